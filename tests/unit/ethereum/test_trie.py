from collections.abc import Sequence

import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st
from trie import HexaryTrie

from chainkit.errors import MalformedData
from chainkit.ethereum import inclusion_proofs, trie_root, verify_inclusion
from chainkit.signatures import keccak256

# Below 32 bytes a node stands within the one above it.
values = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=20)
# Indices take two bytes from 128 on: the trie is of another shape.
many = st.integers(100, 300).map(lambda count: [b"%d" % n * (1 + n % 20) for n in range(count)])


def inclusion_proof(values: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    return inclusion_proofs(values, [index])[1][index]


def flipped(data: bytes, bit: int) -> bytes:
    place, mask = bit // 8 % len(data), 1 << bit % 8
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


def nested(depth: int) -> bytes:
    node = b"\xc0"
    for _ in range(depth):
        node = rlp.codec.length_prefix(len(node), 0xC0) + node
    return node


def test_root__of_nothing__is_the_published_one() -> None:
    assert trie_root([]) == keccak256(b"\x80")
    assert trie_root([]).hex().startswith("56e81f171bcc55a6ff8345e692c0f86e")


def root_of_the_library(values: Sequence[bytes]) -> bytes:
    trie = HexaryTrie({})
    for index, value in enumerate(values):
        trie.set(rlp.encode(index), value)
    return bytes(trie.root_hash)


@given(st.lists(st.binary(min_size=1, max_size=70), max_size=40))
def test_root__any_values__is_the_library_s(values: Sequence[bytes]) -> None:
    assert trie_root(values) == root_of_the_library(values)


@pytest.mark.parametrize("length", [1, 25, 60, 300])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257])
def test_root__as_many_values__is_the_library_s(count: int, length: int) -> None:
    values = [(b"%d|" % n * length)[:length] for n in range(1, count + 1)]

    assert trie_root(values) == root_of_the_library(values)


def test_root__index_of_three_bytes__is_the_library_s() -> None:
    values = [b"%d" % n for n in range(4_100)]

    assert trie_root(values) == root_of_the_library(values)


def test_root__empty_value__is_refused() -> None:
    with pytest.raises(MalformedData, match="value 1 of a trie: expected bytes"):
        trie_root([b"a", b""])


@given(values)
def test_prove__any_values__each_proof_gives_its_value(values: Sequence[bytes]) -> None:
    root = trie_root(values)

    for index, value in enumerate(values):
        assert verify_inclusion(root, index, inclusion_proof(values, index)) == value


@pytest.mark.parametrize(("length", "nodes"), [(28, 1), (29, 2)], ids=["31 bytes", "32 bytes"])
def test_prove__leaf_around_the_length_of_a_hash__stands_in_its_branch_or_alone(
    length: int, nodes: int
) -> None:
    values = [b"a" * length, b"b" * length]
    proof = inclusion_proof(values, 0)

    assert len(proof) == nodes
    assert verify_inclusion(trie_root(values), 0, proof) == values[0]


@settings(max_examples=10)
@given(many, st.data())
def test_prove__one_of_many__gives_its_value(values: Sequence[bytes], data: st.DataObject) -> None:
    index = data.draw(st.sampled_from([0, 1, 127, 128, len(values) - 1]).filter(len(values).__gt__))

    assert (
        verify_inclusion(trie_root(values), index, inclusion_proof(values, index)) == values[index]
    )


@given(values, st.data(), st.integers(0, 2**16))
def test_verify__any_flipped_bit__is_refused(
    values: Sequence[bytes], data: st.DataObject, bit: int
) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    number = data.draw(st.integers(0, 2**16))
    root, proof = trie_root(values), list(inclusion_proof(values, index))

    with pytest.raises(MalformedData):
        verify_inclusion(flipped(root, bit), index, proof)
    proof[number % len(proof)] = flipped(proof[number % len(proof)], bit)
    with pytest.raises(MalformedData):
        verify_inclusion(root, index, proof)


@given(values, st.data())
def test_verify__proof_of_another_index__is_refused(
    values: Sequence[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    other = data.draw(st.integers(0, 2**32).filter(lambda other: other != index))
    root, proof = trie_root(values), inclusion_proof(values, index)

    try:
        got = verify_inclusion(root, other, proof)
    except MalformedData:
        return
    # Neighbours may share all nodes of their proofs: then it is a proof of the other one too.
    assert got == values[other]
    assert proof == inclusion_proof(values, other)


@given(values, st.data())
def test_root__any_other_value__is_another(values: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    other = data.draw(
        st.binary(min_size=1, max_size=40).filter(lambda other: other != values[index])
    )

    assert trie_root([*values[:index], other, *values[index + 1 :]]) != trie_root(values)


@given(values, st.data())
def test_verify__node_left_out_added_or_moved__is_refused(
    values: Sequence[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    root, proof = trie_root(values), inclusion_proof(values, index)
    place = data.draw(st.integers(0, len(proof) - 1))
    others = [proof[:place] + proof[place + 1 :], (*proof, proof[place]), (*proof, b"\xc0")]
    if len(proof) > 1:
        others.append(proof[::-1])

    for other in others:
        with pytest.raises(MalformedData, match=f"inclusion proof of index {index}"):
            verify_inclusion(root, index, other)


@given(st.lists(st.binary(max_size=80), max_size=4), st.integers(0, 2**70))
def test_verify__garbage_under_its_own_root__is_refused(nodes: list[bytes], index: int) -> None:
    root = keccak256(nodes[0]) if nodes else bytes(32)

    with pytest.raises(MalformedData):
        verify_inclusion(root, index, nodes)


items = st.recursive(
    st.binary(max_size=33), lambda item: st.lists(item, max_size=17), max_leaves=30
)


@given(st.lists(items, min_size=1, max_size=17), st.integers(0, 300))
def test_verify__well_formed_nodes_of_no_trie__gives_bytes_or_is_refused(
    node: list[object], index: int
) -> None:
    encoded = rlp.encode(node)
    try:
        assert isinstance(verify_inclusion(keccak256(encoded), index, [encoded]), bytes)
    except MalformedData as error:
        assert error.subject == f"inclusion proof of index {index}"


@pytest.mark.parametrize(
    "node",
    [
        rlp.encode([b"\x20\x80", [b"value"]]),
        rlp.encode([b"\x20\x80", [b"\x20", b"value"]]),
        rlp.encode([b"", b"value"]),
        rlp.encode([[b"\x20\x80"], b"value"]),
        rlp.encode([b"\x00\x80", bytes(32)]),
        rlp.encode([b"\x00\x80", b"short"]),
        rlp.encode([b""] * 16 + [b"value"]),
        rlp.encode([b"\x20\x80", b""]),
        nested(20_000),
        b"\xbf" + b"\xff" * 8,
        b"",
    ],
    ids=[
        *("list for a value", "node for a value", "no path", "list for a path"),
        *("no child", "child of five bytes", "value on the way", "empty value"),
        *("lists in lists", "length beyond the end", "nothing"),
    ],
)
def test_verify__hostile_node__is_refused(node: bytes) -> None:
    with pytest.raises(MalformedData, match="inclusion proof of index 0"):
        verify_inclusion(keccak256(node), 0, [node])


def test_verify__chain_of_nodes_that_consume_nothing__is_refused() -> None:
    nodes = [rlp.encode([b"\x20\x80", b"value"])]
    for _ in range(3_000):
        nodes.append(rlp.encode([b"\x00", keccak256(nodes[-1])]))

    with pytest.raises(MalformedData):
        verify_inclusion(keccak256(nodes[-1]), 0, nodes[::-1])


@pytest.mark.parametrize(("root", "index"), [(bytes(31), 0), (b"", 0), (trie_root([b"x"]), -1)])
def test_verify__root_or_index_that_is_none__is_refused(root: bytes, index: int) -> None:
    with pytest.raises(MalformedData, match=f"inclusion proof of index {index}"):
        verify_inclusion(root, index, inclusion_proof([b"x"], 0))


def test_verify__node_for_a_root__is_refused() -> None:
    node = rlp.encode([b"\x20\x80", b"value"])

    with pytest.raises(MalformedData, match="expected a root of 32 bytes, got 10 bytes"):
        verify_inclusion(node, 0, [node])


def test_verify__of_the_empty_trie__is_refused() -> None:
    with pytest.raises(MalformedData, match="expected a value, got none"):
        verify_inclusion(trie_root([]), 0, [])


@pytest.mark.parametrize("index", [-1, 2])
def test_prove__index_without_a_value__is_refused(index: int) -> None:
    with pytest.raises(MalformedData, match=f"expected an index below 2, got {index}"):
        inclusion_proof([b"a", b"b"], index)


def test_root__with_an_empty_value__is_refused() -> None:
    with pytest.raises(MalformedData, match="value 1 of a trie: expected bytes, got none"):
        trie_root([b"a", b""])
