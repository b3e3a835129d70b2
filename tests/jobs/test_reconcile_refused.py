"""What `chainkit audit reconcile` refuses, and how it says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports import tables
from support.audit.audit_exports import GROUP_MESSAGES, rewrite_table
from support.audit.reconcile_command import A, B, chain_of, node_of, reconcile, refusal

pytestmark = pytest.mark.usefixtures("spark")


def test_reconcile__ids_swapped__is_refused_and_accuses_nobody(tmp_path: Path) -> None:
    node, other = node_of(tmp_path, A), node_of(tmp_path, B)

    result = reconcile(chain_of(tmp_path), [f"{B}={node}", f"{A}={other}"], tmp_path / "audit")

    assert str(refusal(result)) == (
        f"node 200: expected an export with its registered key ({node}), got another: its "
        f"manifest names the key of node 100"
    )


def test_reconcile__id_given_with_a_key_of_nobody__is_refused(tmp_path: Path) -> None:
    nodes: list[Path | str] = [node_of(tmp_path, A), f"{B}={node_of(tmp_path, 300)}"]

    result = reconcile(chain_of(tmp_path), nodes, tmp_path / "audit")

    assert "its manifest names the key that is not registered" in str(refusal(result))


@pytest.mark.parametrize("identity", ["", f"{B}="])
def test_reconcile__chain_export_begins_after_the_registry__says_from_where(
    tmp_path: Path, identity: str
) -> None:
    chain = chain_of(tmp_path, from_block=5)
    nodes: list[Path | str] = [f"{identity}{node_of(tmp_path, B)}", node_of(tmp_path, A)]

    result = reconcile(chain, nodes, tmp_path / "audit")

    assert str(refusal(result)).endswith(
        "(the chain export begins at block 5, maybe after the registry's first entries: export "
        "it from the deployment's first block, 1)"
    )


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

    assert "expected rows of logs.parquet: " in str(refusal(result))
    assert f"as the file has, got {manifest['files']['logs.parquet']['rows']}" in (
        str(refusal(result))
    )


OTHER_CONTRACTS = {
    "GroupMessages": "0x" + (b"\x55" * 20).hex(),
    "IdentityUpdates": "0x" + (b"\x22" * 20).hex(),
}


@pytest.mark.parametrize(
    ("about", "damage", "message"),
    [
        ({"chain_id": 1}, None, "expected chain_id 31337 as in"),
        ({"genesis_hash": "0x" + "00" * 32}, None, "expected genesis_hash 0x"),
        ({"contracts": OTHER_CONTRACTS}, None, f"GroupMessages at 0x{GROUP_MESSAGES.hex()} as in"),
        ({"kind": "chain"}, None, "expected an export of kind node, got chain"),
        ({"node_public_key": None}, None, "expected node_public_key in its manifest, got none"),
        ({}, changed_byte, "expected sha256"),
    ],
)
def test_reconcile__export_unusable__is_refused_and_nothing_written(
    tmp_path: Path, about: dict[str, Any], damage: Callable[[Path], None] | None, message: str
) -> None:
    node = node_of(tmp_path, B, **about)
    if damage is not None:
        damage(node)

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), node], tmp_path / "audit")

    assert message in str(refusal(result))
    assert isinstance(result.exception, StoreError)
    assert not (tmp_path / "audit").exists()


def test_reconcile__key_not_registered__names_export_and_block(tmp_path: Path) -> None:
    result = reconcile(
        chain_of(tmp_path), [node_of(tmp_path, A), node_of(tmp_path, 300)], tmp_path / "audit"
    )

    assert "expected a key registered by block 20" in str(refusal(result))


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
