"""Inclusion proofs: that a transaction or receipt is under the root which a header names.

The key of a value is the RLP of its index (yellow paper, section 4.3.2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trie import HexaryTrie

from chainkit.errors import MalformedData
from chainkit.ethereum.row import encoded, integer_item
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH


def inclusion_proofs(
    values: Sequence[bytes], indexes: Collection[int]
) -> tuple[bytes, dict[int, tuple[bytes, ...]]]:
    """Return the root of ``values``, and the proof of each index.

    A proof is the encoded nodes from the root to the one that holds the value. Raises
    MalformedData for an empty value, or if there is none at an index.
    """
    trie = _trie(values)
    if missing := [index for index in indexes if not 0 <= index < len(values)]:
        raise MalformedData("inclusion proof", f"an index below {len(values)}", missing[0])
    return bytes(trie.root_hash), {index: _proof(trie, _key(index)) for index in indexes}


def verify_inclusion(root: bytes, index: int, proof: Sequence[bytes]) -> bytes:
    """Return the value that a proof shows at ``index`` under a root.

    The proof may come from anybody. Raises MalformedData unless the proof equals the result of
    inclusion_proofs, node for node.
    """
    subject = f"inclusion proof of index {index}"
    # The library would take a shorter root for a node.
    if len(root) != HASH_LENGTH:
        raise MalformedData(subject, f"a root of {HASH_LENGTH} bytes", f"{len(root)} bytes")
    trie = HexaryTrie({keccak256(node): node for node in proof}, root)
    try:
        value, path = trie.get(_key(index)), _proof(trie, _key(index))
    except Exception as error:  # a hostile node makes the library raise anything
        raise MalformedData(subject, "a path of nodes", type(error).__name__) from error
    if not isinstance(value, bytes) or not value:
        raise MalformedData(subject, "a value", "none")
    if path != tuple(proof):
        raise MalformedData(subject, f"{len(path)} nodes in their order", f"{len(proof)} nodes")
    return value


def _trie(values: Sequence[bytes]) -> HexaryTrie:
    trie = HexaryTrie({})
    for index, value in enumerate(values):
        if not value:
            raise MalformedData(f"value {index} of a trie", "bytes", "none")
        trie.set(_key(index), value)
    return trie


def _key(index: int) -> bytes:
    return encoded(integer_item(index))


def _proof(trie: HexaryTrie, key: bytes) -> tuple[bytes, ...]:
    nodes = [encoded(node) for node in trie.get_proof(key)]
    # A node shorter than a hash is within the node above it.
    return (*nodes[:1], *(node for node in nodes[1:] if len(node) >= HASH_LENGTH))
