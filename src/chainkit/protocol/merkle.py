"""The Merkle tree of the network's settlement contract (``SequentialMerkleProofs``), for one leaf.

A leaf's hash is keccak256 of ``leaf|`` and its bytes; a pair's of ``node|`` and both hashes; that
of a node without a neighbour of ``node|`` and its hash; the root's of ``root|``, the number of
leaves in 32 bytes, and the highest node. So a leaf is never taken for a node, and a root binds how
many leaves there are. The root of no leaves is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH

EMPTY_ROOT: Final = bytes(HASH_LENGTH)

_LEAF: Final = b"leaf|"
_NODE: Final = b"node|"
_ROOT: Final = b"root|"
_MOST_LEAVES: Final = 2**32 - 1


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of some leaves, 32 bytes."""
    if not leaves:
        return EMPTY_ROOT
    return _rooted(len(leaves), _levels(leaves)[-1][0])


def merkle_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the proof of a leaf, as the contract takes it; it begins with the number of leaves.

    The other elements are the neighbours on the way from the leaf to the root. Raises MalformedData
    where there is no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise MalformedData("Merkle proof", f"an index below {len(leaves)}", index)
    proof = [len(leaves).to_bytes(HASH_LENGTH, "big")]
    for level in _levels(leaves)[:-1]:
        if (neighbour := index ^ 1) < len(level):
            proof.append(level[neighbour])
        index >>= 1
    return proof


def verify_merkle_proof(root: bytes, index: int, leaf: bytes, proof: Sequence[bytes]) -> None:
    """Check that a leaf has an index under a root. Raises MalformedData where it does not."""
    subject = f"Merkle proof of leaf {index}"
    if not proof or any(len(each) != HASH_LENGTH for each in proof):
        raise MalformedData(subject, f"elements of {HASH_LENGTH} bytes", "others or none")
    count, others = int.from_bytes(proof[0], "big"), list(proof[1:])
    if not 0 <= index < count <= _MOST_LEAVES:
        raise MalformedData(subject, "a leaf of the tree", f"one of {count}")
    found, place, width = _hashed(_LEAF, leaf), index, count
    for _ in range(max((count - 1).bit_length(), 1)):
        if place ^ 1 >= width:
            found = _hashed(_NODE, found)
        elif not others:
            raise MalformedData(subject, "a neighbour on each level", "fewer")
        elif place & 1:
            found = _hashed(_NODE, others.pop(0), found)
        else:
            found = _hashed(_NODE, found, others.pop(0))
        place, width = place >> 1, (width + 1) >> 1
    if others or _rooted(count, found) != root:
        raise MalformedData(subject, f"root 0x{root.hex()}", "another root")


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return the hashes of each level, from the leaves' to the highest node alone."""
    levels = [[_hashed(_LEAF, each) for each in leaves]]
    while len(levels) == 1 or len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([_hashed(_NODE, *below[at : at + 2]) for at in range(0, len(below), 2)])
    return levels


def _rooted(count: int, node: bytes) -> bytes:
    return _hashed(_ROOT, count.to_bytes(HASH_LENGTH, "big"), node)


def _hashed(label: bytes, *parts: bytes) -> bytes:
    return keccak256(label + b"".join(parts))
