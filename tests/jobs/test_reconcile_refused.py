"""Unusable exports are refused by `chainkit audit reconcile`, or set aside, in clear words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from chainkit.errors import ConfigurationError
from chainkit.exports import tables
from support.audit.audit_exports import GROUP_MESSAGES, rewrite_table
from support.audit.reconcile_command import A, B, chain_of, node_of, reconcile, refusal

pytestmark = pytest.mark.usefixtures("spark")


def set_aside(result: Result, out: Path) -> list[str]:
    """Return what was set aside: told in the terminal and the summary, which accuses nobody."""
    assert result.exit_code == 2, result.output
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["outcome"], summary["findings"]) == ("could not compare", {})
    assert all(sentence in result.stderr for sentence in summary["set_aside"])
    assert summary["not_compared"][: len(summary["set_aside"])] == summary["set_aside"]
    sentences: list[str] = summary["set_aside"]
    return sentences


def test_reconcile__ids_swapped__both_are_set_aside_and_nobody_accused(tmp_path: Path) -> None:
    node, other = node_of(tmp_path, A), node_of(tmp_path, B)

    result = reconcile(chain_of(tmp_path), [f"{B}={node}", f"{A}={other}"], tmp_path / "audit")

    assert set_aside(result, tmp_path / "audit") == [
        f"node {own}: expected an export with its registered key ({path}), got another: its "
        f"manifest names the key of node {owner}"
        for own, path, owner in ((B, node, A), (A, other, B))
    ]


def test_reconcile__chain_export_begins_after_the_registry__says_from_where(
    tmp_path: Path,
) -> None:
    chain = chain_of(tmp_path, from_block=5)
    nodes: list[Path | str] = [node_of(tmp_path, B), node_of(tmp_path, A)]
    hint = (
        "(the chain export begins at block 5, maybe after the registry's first entries: export "
        "it from the deployment's first block, 1)"
    )

    result = reconcile(chain, nodes, tmp_path / "audit")
    by_id = reconcile(chain, [f"{B}={nodes[0]}", nodes[1]], tmp_path / "other")

    assert [each.endswith(hint) for each in set_aside(result, tmp_path / "audit")] == [True] * 2
    assert str(refusal(by_id)).endswith(hint)


def changed_byte(path: Path) -> None:
    file = path / "envelopes.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_reconcile__manifest_counts_other_rows_than_the_file__is_told(tmp_path: Path) -> None:
    chain = chain_of(tmp_path)
    manifest = json.loads((chain / "manifest.json").read_text())
    manifest["files"]["logs.parquet"]["rows"] += 1
    (chain / "manifest.json").write_text(json.dumps(manifest))

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], tmp_path / "audit")

    told = manifest["files"]["logs.parquet"]["rows"]
    words = f"logs.parquet: expected {told - 1}, as the file has, got {told} (manifest.json)"
    assert words in str(refusal(result))


OTHER_CONTRACTS = {
    "GroupMessages": "0x" + (b"\x55" * 20).hex(),
    "IdentityUpdates": "0x" + (b"\x22" * 20).hex(),
}


@pytest.mark.parametrize(
    ("about", "damage", "message"),
    [
        ({"chain_id": 1}, None, "node 200: its export cannot be used: export "),
        ({"contracts": OTHER_CONTRACTS}, None, f"GroupMessages at 0x{GROUP_MESSAGES.hex()} as in"),
        ({"kind": "chain"}, None, "expected an export of kind node, got chain"),
        ({"node_public_key": None}, None, "expected node_public_key in its manifest, got none"),
        ({}, changed_byte, "expected sha256"),
    ],
)
def test_reconcile__export_unusable__is_set_aside_and_the_other_compared(
    tmp_path: Path, about: dict[str, Any], damage: Callable[[Path], None] | None, message: str
) -> None:
    node = node_of(tmp_path, B, **about)
    if damage is not None:
        damage(node)
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), node], out)

    [sentence] = set_aside(result, out)
    assert message in sentence
    assert str(node) in sentence
    nodes = json.loads((out / "summary.json").read_text())["nodes"]
    assert [each["matched"] for each in nodes if each["node_id"] == A] == [7]


@pytest.mark.parametrize("name", ["no", "node-100/manifest.json"])
def test_reconcile__no_folder_is_named__is_the_auditors_error(tmp_path: Path, name: str) -> None:
    node = node_of(tmp_path, A)

    result = reconcile(chain_of(tmp_path), [node, tmp_path / name], tmp_path / "audit")

    assert "expected a folder with manifest.json" in str(refusal(result))
    assert not (tmp_path / "audit").exists()


def test_reconcile__one_node_twice__is_refused(tmp_path: Path) -> None:
    node = node_of(tmp_path, A)

    result = reconcile(chain_of(tmp_path), [node, f"{A}={node}"], tmp_path / "audit")

    assert isinstance(refusal(result), ConfigurationError)


def test_reconcile__id_not_registered__tells_which_are(tmp_path: Path) -> None:
    result = reconcile(
        chain_of(tmp_path), [node_of(tmp_path, A), f"300={node_of(tmp_path, B)}"], tmp_path / "o"
    )

    assert str(refusal(result)) == "node 300: expected a registered id (100, 200), got another"


def test_reconcile__log_of_the_contract_does_not_decode__is_refused(tmp_path: Path) -> None:
    chain = chain_of(tmp_path)
    rows = pq.read_table(chain / "logs.parquet").to_pylist()
    rows[-1]["data"] = rows[-1]["data"][:40]
    rewrite_table(chain, "logs.parquet", pa.Table.from_pylist(rows, schema=tables.LOGS))

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], tmp_path / "audit")

    assert "chain export: expected payload logs that decode" in str(refusal(result))
    assert "(block 17, log 1008)" in str(refusal(result))


def test_reconcile__one_node_only__is_a_usage_error(tmp_path: Path) -> None:
    result = reconcile(tmp_path, [tmp_path], tmp_path / "audit")

    assert result.exit_code == 2
    assert "two or more" in result.stderr


def test_reconcile__output_exists__is_refused_before_any_work(tmp_path: Path) -> None:
    result = reconcile(tmp_path / "no", [tmp_path / "x", tmp_path / "y"], tmp_path)

    assert "already exists" in str(refusal(result))
