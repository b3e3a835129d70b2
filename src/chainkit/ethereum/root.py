"""The root of a block's trie, built from all values at once.

PyPI's ``trie`` inserts one value after the other, and hashes each node on the way again, which
takes ten times the work. Inclusion proofs are still made with ``trie``, and tests compare this
module with it. The keys are the numbers from 0, so the trie's shape depends on the number of values
alone: the shapes of the last few numbers are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from trie.constants import BLANK_NODE_HASH

from chainkit.errors import MalformedData
from chainkit.ethereum.rlp_bytes import EMPTY, encoded_bytes, encoded_integer, encoded_list
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH

_KEPT_SHAPES: Final = 64
"""A shape takes some 300 bytes for each value."""

_Key = tuple[tuple[int, ...], int]
"""A key in nibbles, and the index of its value."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: bytes
    """RLP of the rest of the key."""
    index: int


@dataclass(frozen=True, slots=True)
class _Extension:
    path: bytes
    below: _Branch


@dataclass(frozen=True, slots=True)
class _Branch:
    children: tuple[tuple[int, _Node], ...]
    """Children by nibble. No RLP begins with another RLP, so no value is in the branch itself."""


_Node = _Leaf | _Extension | _Branch


def trie_root(values: Sequence[bytes]) -> bytes:
    """Return the 32-byte root over encoded transactions or receipts, in the order of the block.

    The key of a value is the RLP of its index (yellow paper, section 4.3.2 and appendix D). Raises
    MalformedData for an empty value, which a trie cannot hold.
    """
    if not values:
        return bytes(BLANK_NODE_HASH)
    if not all(values):
        index = next(index for index, value in enumerate(values) if not value)
        raise MalformedData(f"value {index} of a trie", "bytes", "none")
    return keccak256(_encoded(_shape(len(values)), values))


def _encoded(node: _Node, values: Sequence[bytes]) -> bytes:
    if isinstance(node, _Leaf):
        return encoded_list((node.path, encoded_bytes(values[node.index])))
    if isinstance(node, _Extension):
        return encoded_list((node.path, _reference(_encoded(node.below, values))))
    branch = [EMPTY] * 17
    for nibble, child in node.children:
        branch[nibble] = _reference(_encoded(child, values))
    return encoded_list(branch)


def _reference(node: bytes) -> bytes:
    """Return a node's reference in its parent: its hash, or the node itself if it is shorter."""
    return node if len(node) < HASH_LENGTH else encoded_bytes(keccak256(node))


@lru_cache(_KEPT_SHAPES)
def _shape(count: int) -> _Node:
    """Return the nodes of a trie whose keys are the RLP of the numbers below ``count``."""
    return _node(sorted((_nibbles(encoded_integer(index)), index) for index in range(count)), 0)


def _node(keys: Sequence[_Key], depth: int) -> _Node:
    """Return the node of some keys in order, which share the first ``depth`` nibbles."""
    first, index = keys[0]
    if len(keys) == 1:
        return _Leaf(encoded_bytes(_path(first[depth:], is_leaf=True)), index)
    # The keys are sorted: what first and last share, all share.
    last, _ = keys[-1]
    shared = depth
    while first[shared] == last[shared]:
        shared += 1
    groups = groupby(keys, lambda key: key[0][shared])
    branch = _Branch(tuple((nibble, _node(list(group), shared + 1)) for nibble, group in groups))
    if shared == depth:
        return branch
    return _Extension(encoded_bytes(_path(first[depth:shared], is_leaf=False)), branch)


def _path(nibbles: tuple[int, ...], *, is_leaf: bool) -> bytes:
    """Pack nibbles into bytes, with a flag for a value that follows, and one for an odd number."""
    flag = 2 * is_leaf
    whole = (flag + 1, *nibbles) if len(nibbles) % 2 else (flag, 0, *nibbles)
    return bytes(16 * high + low for high, low in zip(whole[::2], whole[1::2], strict=True))


def _nibbles(key: bytes) -> tuple[int, ...]:
    return tuple(nibble for byte in key for nibble in divmod(byte, 16))
