"""Which export is whose, where ids, keys and signatures say so, or contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit.types import Node
from chainkit_jobs.reconcile.identity import Identified, identify_nodes
from chainkit_jobs.reconcile.inputs import NamedExport, Refused
from chainkit_jobs.reconcile.nodes import Registry
from support.audit.answers import write_answers
from support.audit.audit_exports import base_posts, honest, key_of, write_chain, write_node
from support.audit.inputs import read_inputs

A, B, STRANGER = 100, 200, 300


def registry(*node_ids: int) -> Registry:
    nodes = {each: Node(each, key_of(each).public_key, "", True) for each in node_ids}
    return Registry(nodes, at_block=20)


def served(root: Path, name: str, signer: int, claimed: int | None = None) -> Path:
    """Write an export signed by one node's key that claims to be of another."""
    envelopes = honest(base_posts(), key_of(signer))
    about = {} if claimed is None else {"node_public_key": key_text(claimed)}
    return write_node(root / name, envelopes, key_of(signer), **about)


def key_text(node_id: int) -> str:
    return "0x" + key_of(node_id).public_key.hex()


def identified(root: Path, *nodes: tuple[int | None, Path]) -> Identified:
    inputs = read_inputs(write_chain(root / "chain", base_posts(), []), nodes)
    return identify_nodes(inputs, registry(A, B))


def found(result: Identified) -> dict[int, str]:
    return {each.node.node_id: each.export.directory.name for each in result.nodes}


def test_identify__key_in_capitals__is_found(tmp_path: Path) -> None:
    key = "0x" + key_of(A).public_key.hex().upper()
    node = write_node(tmp_path / "a", honest(base_posts(), key_of(A)), key_of(A))
    shouted = write_node(tmp_path / "b", [], key_of(A), node_public_key=key)

    assert found(identified(tmp_path, (None, node))) == {A: "a"}
    assert found(identified(tmp_path / "again", (None, shouted))) == {A: "b"}


def test_identify__id_that_nobody_has__is_the_auditors_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a registered id \(100, 200\)"):
        identified(tmp_path, (STRANGER, served(tmp_path, "a", A)))


@pytest.mark.parametrize("is_first", [True, False])
def test_identify__another_nodes_key__the_signatures_decide(tmp_path: Path, is_first: bool) -> None:
    own, other = served(tmp_path, "own", A), served(tmp_path, "other", STRANGER, claimed=A)
    nodes: list[NamedExport] = [(None, own), (None, other)]  # type: ignore[list-item]

    result = identified(tmp_path, *(nodes if is_first else nodes[::-1]))  # type: ignore[arg-type]

    assert found(result) == {A: "own"}
    reason = f"export {other}: its manifest names the key of node 100, whose export is {own}"
    assert result.refused == (Refused(str(other), None, reason),)


@pytest.mark.parametrize("signer", [A, STRANGER], ids=["both signed", "none signed"])
def test_identify__signatures_do_not_tell__neither_is_believed(tmp_path: Path, signer: int) -> None:
    first = served(tmp_path, "first", signer, claimed=A)
    second = served(tmp_path, "second", signer, claimed=A)

    result = identified(tmp_path, (None, first), (None, second), (None, served(tmp_path, "b", B)))

    assert found(result) == {B: "b"}
    reason = (
        f"node 100: {first} and {second} name its key, and their signatures do not tell which is "
        "its export: give its id with the right one (--node 100=DIR)"
    )
    assert result.refused == (
        Refused(str(first), None, reason),
        Refused(str(second), None, reason),
    )


def test_identify__the_auditor_gives_the_id__that_decides(tmp_path: Path) -> None:
    first, second = served(tmp_path, "first", A), served(tmp_path, "second", A)

    assert found(identified(tmp_path, (A, first), (None, second))) == {A: "first"}


def answered(root: Path, name: str, signers: str = "AAAAAAA", **about: str) -> Path:
    """Write a node's answers, each signed by A or by a stranger."""
    keys = {"A": key_of(A), "S": key_of(STRANGER)}
    valid = [honest(base_posts(), keys[signer]) for signer in "AS"]
    envelopes = [valid["AS".index(signer)][place] for place, signer in enumerate(signers)]
    return write_answers(root / name, envelopes, key_of(A), **about)


def others(result: Identified) -> list[str]:
    [node] = result.nodes
    return [export.directory.name for export in node.others]


def test_identify__a_node_was_asked_twice__both_are_its_exports(tmp_path: Path) -> None:
    first, second = answered(tmp_path, "first"), answered(tmp_path, "second")

    for given in (None, A):
        result = identified(tmp_path / str(given), (given, first), (given, second))

        assert (found(result), others(result)) == ({A: "first"}, ["second"])
        assert result.refused == ()


@pytest.mark.parametrize("given", [None, A])
@pytest.mark.parametrize("is_first", [True, False])
def test_identify__operators_export_beside_answers__is_held_against_the_chain(
    tmp_path: Path, is_first: bool, given: int | None
) -> None:
    nodes: list[NamedExport] = [
        (None, served(tmp_path, "own", A)),  # type: ignore[list-item]
        (given, answered(tmp_path, "answers")),  # type: ignore[list-item]
    ]

    result = identified(tmp_path, *(nodes if is_first else nodes[::-1]))  # type: ignore[arg-type]

    assert (found(result), others(result)) == ({A: "own"}, ["answers"])


def test_identify__answers_with_some_wrong_signatures__are_the_nodes_if_most_are_its_own(
    tmp_path: Path,
) -> None:
    own, most, half = (
        answered(tmp_path, name, signers)
        for name, signers in (("own", "AAAAAAA"), ("most", "ASASASA"), ("half", "ASAS"))
    )

    result = identified(tmp_path, (None, own), (None, most), (None, half))

    assert (found(result), others(result)) == ({A: "own"}, ["most"])
    assert [refused.folder for refused in result.refused] == [str(half)]


def test_identify__answers_that_changed_since__are_refused_with_the_reason(tmp_path: Path) -> None:
    first, second = answered(tmp_path, "first"), answered(tmp_path, "second")
    (second / "envelopes.parquet").write_bytes(b"")

    result = identified(tmp_path, (A, first), (A, second))

    assert (found(result), others(result)) == ({A: "first"}, [])
    [refused] = result.refused
    assert refused.reason.startswith(f"export {second}, of node 100: export file ")


def test_read_inputs__two_operators_exports_of_one_id__are_the_auditors_error(
    tmp_path: Path,
) -> None:
    first, second = served(tmp_path, "first", A), served(tmp_path, "second", A)

    with pytest.raises(ConfigurationError, match="node 100: expected one export by its operator"):
        identified(tmp_path, (A, first), (A, second))


def test_identify__files_of_the_other_cannot_be_used__they_are_not_opened(tmp_path: Path) -> None:
    own, other = served(tmp_path, "own", A), served(tmp_path, "other", A)
    (other / "envelopes.parquet").write_bytes(b"")

    assert found(identified(tmp_path, (None, other), (None, own))) == {A: "own"}


@pytest.mark.parametrize(
    ("node_id", "claimed", "words"),
    [
        (None, STRANGER, "expected a key registered by block 20"),
        (B, STRANGER, "its manifest names the key that is not registered"),
        (B, A, "its manifest names the key of node 100"),
    ],
)
def test_identify__key_of_nobody_or_of_another_than_the_id__is_set_aside(
    tmp_path: Path, node_id: int | None, claimed: int, words: str
) -> None:
    wrong = served(tmp_path, "wrong", B, claimed=claimed)

    result = identified(tmp_path, (None, served(tmp_path, "a", A)), (node_id, wrong))

    assert found(result) == {A: "a"}
    [refused] = result.refused
    assert words in refused.reason
    assert str(wrong) in refused.reason
    assert (refused.folder, refused.node_id) == (str(wrong), node_id)


def test_identify__folder_named_to_rewrite_a_screen__is_shown_as_it_is_written(
    tmp_path: Path,
) -> None:
    wrong = served(tmp_path, "b", B, claimed=STRANGER).rename(tmp_path / "\x1b[2J\nb\udcff")
    empty = tmp_path / "\x1b[2J\nc"
    empty.mkdir()

    inputs = read_inputs(
        write_chain(tmp_path / "chain", base_posts(), []), [(None, wrong), (B, empty)]
    )

    [of_nobody] = identify_nodes(inputs, registry(A, B)).refused
    [without_manifest] = inputs.refused
    assert of_nobody.folder == f"{tmp_path}/\\x1b[2J\\x0ab\\udcff"
    assert without_manifest.folder == f"{tmp_path}/\\x1b[2J\\x0ac"
    assert without_manifest.node_id == B
    assert (of_nobody.reason + without_manifest.reason).isprintable()
