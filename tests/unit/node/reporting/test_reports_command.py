"""``chainkit node reports``: one line, or one object, for each report of a database."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit_node.cli import node as node_group
from support.reporting import (
    ACCUSED,
    KEYS,
    NOW_NS,
    OTHER,
    Host,
    double,
    gap,
    proof,
    slow,
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "node.db"
    with closing(Host(path)) as host:
        kind = Misbehavior.OUT_OF_ORDER
        host.writer.submit_own_safety(ACCUSED, kind, gap(5))
        host.submit(proof(7, OTHER), slow(1))
    return path


def command(*arguments: object) -> str:
    result = CliRunner().invoke(node_group, ["reports", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def listed(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command(*arguments, "--json"))
    return found


def test_reports__of_each_kind__are_a_line_each_with_their_evidence(database: Path) -> None:
    lines = command("--database", database).splitlines()

    assert lines == [
        f"{NOW_NS} node 200 OUT_OF_ORDER claimed, from node: "
        "7 of originator 200; 5 of originator 200",
        f"{NOW_NS + 1} node 300 DUPLICATE_SEQUENCE_ID proved, from client: "
        "7 of originator 300; 7 of originator 300",
        f"{NOW_NS + 2} node 200 SLOW_NODE claimed, from client: a response of 0.500 s",
    ]


def test_reports__selected_by_node_time_and_number__are_objects(database: Path) -> None:
    everything = listed("--database", database)

    assert [each["node_id"] for each in everything] == [200, 300, 200]
    assert listed("--database", database, "--limit", 2) == everything[:2]
    assert listed("--database", database, "--node", 300) == everything[1:2]
    after = everything[0]["server_time_ns"]
    assert listed("--database", database, "--after", after, "--node", 200) == everything[2:]
    assert command("--database", database, "--after", NOW_NS + 2) == "no reports\n"


def test_reports__evidence_of_the_chain__names_its_transaction(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    unsigned = b"\x08\x00\x10\x09"
    evidence = sign_originator_envelope(unsigned, b"\x12" * 32, KEYS[ACCUSED])
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    with closing(Host(path)) as host:
        [error] = host.submit(safety_report(ACCUSED, kind, [evidence], NOW_NS, False))
        assert error is None

    [found] = listed("--database", path)

    assert found["evidence"] == f"9 of originator 0 at transaction 0x{'12' * 32}"


def test_reports__more_bytes_than_are_read_at_once__are_all_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_node.cli.reports._MOST_BYTES", 1)
    path = tmp_path / "node.db"
    with closing(Host(path)) as host:
        host.writer.submit_own_safety(ACCUSED, Misbehavior.DUPLICATE_SEQUENCE_ID, double(1))
        host.submit(slow(1), slow(2))

    assert len(listed("--database", path)) == 3
