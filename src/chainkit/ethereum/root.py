"""The root of a block's trie, built from all values at once.

PyPI's ``trie`` inserts one value after the other, and hashes each node on the way again: five times
the work. It stays what inclusion proofs are made with, and what this is held against by tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from trie.constants import BLANK_NODE_HASH

from chainkit.errors import MalformedData
from chainkit.ethereum.rlp_bytes import EMPTY, encoded_bytes, encoded_list
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH

_Item = tuple[tuple[int, ...], bytes]
"""A key in nibbles, and the RLP of its value."""


def trie_root(values: Sequence[bytes]) -> bytes:
    """Return the 32-byte root over encoded transactions or receipts, in the order of the block.

    The key of a value is the RLP of its index (yellow paper, section 4.3.2 and appendix D). Raises
    MalformedData for an empty value: a trie cannot hold it.
    """
    for index, value in enumerate(values):
        if not value:
            raise MalformedData(f"value {index} of a trie", "bytes", "none")
    if not values:
        return bytes(BLANK_NODE_HASH)
    items = sorted(
        (_nibbles(_key(index)), encoded_bytes(value)) for index, value in enumerate(values)
    )
    return keccak256(_node(items, 0))


def _node(items: Sequence[_Item], depth: int) -> bytes:
    """Encode the node under which some items stand that share the first ``depth`` nibbles."""
    first, value = items[0]
    if len(items) == 1:
        return encoded_list([encoded_bytes(_path(first[depth:], is_leaf=True)), value])
    # The items are sorted: what first and last share, all share.
    last, _ = items[-1]
    shared = depth
    while first[shared] == last[shared]:
        shared += 1
    if shared > depth:
        below = _reference(_node(items, shared))
        return encoded_list([encoded_bytes(_path(first[depth:shared], is_leaf=False)), below])
    # No RLP begins with another one, so that no value stands in the branch itself.
    branch = [EMPTY] * 17
    for nibble, group in groupby(items, lambda item: item[0][depth]):
        branch[nibble] = _reference(_node(list(group), depth + 1))
    return encoded_list(branch)


def _reference(node: bytes) -> bytes:
    """Return what stands for a node in the one above it: its hash, or itself if it is shorter."""
    return node if len(node) < HASH_LENGTH else encoded_bytes(keccak256(node))


def _path(nibbles: tuple[int, ...], *, is_leaf: bool) -> bytes:
    """Pack nibbles into bytes, with whether a value follows and whether their number is odd."""
    flag = 2 * is_leaf
    whole = (flag + 1, *nibbles) if len(nibbles) % 2 else (flag, 0, *nibbles)
    return bytes(16 * high + low for high, low in zip(whole[::2], whole[1::2], strict=True))


def _nibbles(key: bytes) -> tuple[int, ...]:
    return tuple(nibble for byte in key for nibble in divmod(byte, 16))


def _key(index: int) -> bytes:
    return encoded_bytes(index.to_bytes((index.bit_length() + 7) // 8, "big"))
