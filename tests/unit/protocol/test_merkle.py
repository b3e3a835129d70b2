"""The settlement contract's Merkle tree: its own samples, and each place of trees of all sizes."""

from __future__ import annotations

import pytest

from chainkit.errors import MalformedData
from chainkit.protocol.merkle import merkle_proof, merkle_root, verify_merkle_proof
from chainkit.signatures import keccak256

ONE_LEAF = bytes.fromhex("6330b989705733cc5c1f7285b8a5b892e08be86ed6fbe9d254713a4277bc5bd2")
ONE_ROOT = bytes.fromhex("5b833bdf4f55e39d1838653841d4a2c651a71b5626b7936e1bedb5212cae96e3")
"""A sample of the contract's own tests; the next one is of leaves 4 and 5 of 7."""
FOURTH = bytes.fromhex("4a864e860c0d0247c6aa5ebcb2bc3f15fc4ddf86213258f4bf0b72e51c9d9c69")
FIFTH = bytes.fromhex("51b7ae2bab96bd3fbb3b26e1efefb0b9b6a60054ed7ffcfa700374d58f315a31")
SEVEN_ROOT = bytes.fromhex("38631dd8b5081555ec3c51cc8db7918ee90158fa33a70674c1399234d23908b2")
NEIGHBOURS = [
    bytes.fromhex("6b379ab3dd3b0b8df76cbe09e2a04f21ebf601f2932d3505ecfb89417f3de836"),
    bytes.fromhex("52bd35868bccc1b1f4c3ac67dd7e3b3db4a24f60436411162d633e6d1118de89"),
]
SIZES = [*range(1, 18), 33, 100]


def test_root__of_the_contracts_sample__is_the_contracts() -> None:
    assert merkle_root([ONE_LEAF]) == ONE_ROOT
    assert merkle_root([]) == bytes(32)
    verify_merkle_proof(ONE_ROOT, 0, ONE_LEAF, merkle_proof([ONE_LEAF], 0))


@pytest.mark.parametrize(("index", "leaf", "other"), [(4, FOURTH, FIFTH), (5, FIFTH, FOURTH)])
def test_verify__the_contracts_sample_of_seven__is_right(
    index: int, leaf: bytes, other: bytes
) -> None:
    count = (7).to_bytes(32, "big")

    verify_merkle_proof(SEVEN_ROOT, index, leaf, [count, keccak256(b"leaf|" + other), *NEIGHBOURS])


@pytest.mark.parametrize("size", SIZES)
def test_verify__each_leaf__stands_at_its_place_alone(size: int) -> None:
    leaves = [bytes([each]) * 3 for each in range(size)]
    root = merkle_root(leaves)

    for index, leaf in enumerate(leaves):
        proof = merkle_proof(leaves, index)
        verify_merkle_proof(root, index, leaf, proof)
        wrong = [
            (root, index, b"other", proof),
            (root, (index + 1) % size if size > 1 else 1, leaf, proof),
            (root, index, leaf, proof[:-1]),
            (root, index, leaf, [*proof, bytes(32)]),
            (root, index, leaf, [(size + 1).to_bytes(32, "big"), *proof[1:]]),
            (bytes(32), index, leaf, proof),
            (root, index, leaf, [each[1:] for each in proof]),
        ]
        for arguments in wrong:
            with pytest.raises(MalformedData):
                verify_merkle_proof(*arguments)


@pytest.mark.parametrize("index", [-1, 2])
def test_proof__no_such_leaf__is_refused(index: int) -> None:
    with pytest.raises(MalformedData, match="an index below 2"):
        merkle_proof([b"a", b"b"], index)
