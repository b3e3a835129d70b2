from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.registry_history import history_findings, not_comparable
from chainkit_jobs.sources import Export, read_export
from support.audit.audit_exports import hash_of, key_of, registered, time_of, write_chain
from support.audit.node_tables import Row, registry_rows, write_tables

KEY = key_of(100)
CHAIN_ID, ADDRESS = 31337, "0x" + "33" * 20
LAST = 20


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Export:
    registry = [registered(100), registered(200, block=5), registered(200, 9, is_enabled=False)]
    folder = write_chain(tmp_path_factory.mktemp("chain") / "chain", [], registry)
    return read_export(folder, "chain")


def follows(**changes: Any) -> dict[str, Any]:
    block = changes.get("block_number", LAST)
    about = {"chain_id": CHAIN_ID, "address": ADDRESS, "block_number": block}
    return about | {"block_hash": "0x" + hash_of(block).hex()} | changes


def written(root: Path, rows: list[Row], registry: Mapping[str, Any] | None) -> NodeExport:
    tables = {"envelopes": [], "registry_updates": rows}
    return write_tables(root / "node", 100, KEY, tables, registry=registry)


def compared(
    chain: Export, root: Path, rows: list[Row], **registry: Any
) -> tuple[list[tuple[int | None, str]], str | None]:
    node = written(root, rows, follows(**registry))
    assert not_comparable(chain, node) is None
    updates = {
        (row["block_number"], row["log_index"]): {
            name: value for name, value in row.items() if name not in ("block_number", "log_index")
        }
        for row in history(chain)
    }
    hashes = {number: "0x" + hash_of(number).hex() for number in range(1, LAST + 1)}
    findings, reason = history_findings(chain, node, updates, hashes)
    return [(row["block_number"], row["detail"]) for row in findings], reason


def history(chain: Export) -> list[Row]:
    return registry_rows(chain.directory)


def test_history__as_on_the_chain__nothing_is_found(chain: Export, tmp_path: Path) -> None:
    assert compared(chain, tmp_path, history(chain)[::-1]) == ([], None)


def test_history__ends_before_an_update__only_what_it_covers_is_demanded(
    chain: Export, tmp_path: Path
) -> None:
    assert compared(chain, tmp_path, history(chain)[:2], block_number=8) == ([], None)
    lacking, _ = compared(chain, tmp_path, history(chain)[:2], block_number=9)
    assert lacking == [(9, "the node's history lacks this NodeUpdated of node 200")]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("timestamp", 7, f"timestamp: expected {time_of(5)}, got 7"),
        ("node_id", 300, "node_id: expected 200, got 300"),
        ("is_enabled", False, "is_enabled: expected True, got False"),
        ("http_address", b"\xff", "http_address: expected 0x68747470733a2f2f"),
        ("transaction_hash", b"\x01", "transaction_hash: expected 0x0000"),
        ("block_hash", b"\x01", "block_hash: expected 0x"),
        ("signing_key", b"\x04", "signing_key: expected 0x04"),
    ],
)
def test_history__one_column_differs__names_it(
    chain: Export, tmp_path: Path, column: str, value: object, words: str
) -> None:
    rows = history(chain)
    rows[1][column] = value

    [(block, detail)], _ = compared(chain, tmp_path, rows)

    assert block == 5
    assert detail.startswith(words)


def test_history__update_that_the_chain_lacks__is_found_without_a_place_on_the_chain(
    chain: Export, tmp_path: Path
) -> None:
    rows = history(chain)

    [(block, detail)], _ = compared(chain, tmp_path, [*rows, rows[1] | {"block_number": 6}])

    assert block is None
    assert detail.startswith("block 6, log ")


def test_history__update_below_the_chain_export__is_not_judged(
    chain: Export, tmp_path: Path
) -> None:
    rows = history(chain)

    assert compared(chain, tmp_path, [*rows, rows[1] | {"block_number": 0}]) == ([], None)


def test_history__update_twice__is_found(chain: Export, tmp_path: Path) -> None:
    rows = history(chain)

    found, _ = compared(chain, tmp_path, [*rows, rows[1]])

    assert found == [(5, "the node's history holds this NodeUpdated 2 times")]


def test_history__ends_on_another_fork__is_not_compared(chain: Export, tmp_path: Path) -> None:
    found, reason = compared(chain, tmp_path, [], block_hash="0x" + "00" * 32)

    assert found == []
    assert reason is not None
    assert reason.startswith("it ends on another fork: its block 20 is 0x0000")


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (None, "its manifest names no registry"),
        (follows(chain_id=1), f"it follows {ADDRESS} on chain 1, not {ADDRESS}"),
        (
            follows(address="0x" + "44" * 20),
            f"it follows 0x{'44' * 20} on chain {CHAIN_ID}, not {ADDRESS}",
        ),
        (follows(block_number=21), "it ends at block 21, the chain export holds 1 to 20"),
        (follows(block_number=0), "it ends at block 0, the chain export holds 1 to 20"),
        (follows(), None),
    ],
)
def test_not_comparable__another_registry_or_range__says_why(
    chain: Export, tmp_path: Path, registry: Mapping[str, Any] | None, reason: str | None
) -> None:
    assert not_comparable(chain, written(tmp_path, [], registry)) == reason
