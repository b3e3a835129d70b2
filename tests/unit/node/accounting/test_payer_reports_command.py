"""``chainkit node payer-reports``: listed, shown, exported and proved from a database."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from chainkit.protocol.charges import Charge
from chainkit.protocol.payer_reports import PayerTotal, verify_total
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit_node.cli import node as node_group
from support.accounting import Bookkeeper, bookkeepers, listed

A, B = 100, 200
PAYERS = [bytes([each]) * 20 for each in (1, 2)]
LOG = {each: Charge(PAYERS[each % 2], 0, 100 * each, 30) for each in range(1, 5)}
SUMS = "2 payers, 4 messages, 1000 bytes, 30000 byte-days"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("payer-reports")
    a, b = bookkeepers(folder, listed(A, B))
    for each in (a, b):
        each.holds(A, LOG)
        each.holds(B, {1: LOG[1]})
    a.makes()
    b.makes()
    b.asks(a)
    a.asks(b)
    a.holds(A, {5: LOG[1]})
    a.makes()
    _refuse_one(a)
    for each in (a, b):
        each.store.close()
    return folder / f"{A}.db"


def _refuse_one(node: Bookkeeper) -> None:
    [report] = node.totals(B)
    node.takes(replace(report, totals=[report.totals[0]._replace(bytes=1)]))


def command(*arguments: object, fails: bool = False) -> str:
    result = CliRunner().invoke(node_group, ["payer-reports", *map(str, arguments)])
    assert (result.exit_code != 0) == fails, result.output
    return str(result.exception) if fails else result.output


def test_list__of_each_originator__is_a_line_with_sums_and_signers(database: Path) -> None:
    assert command("list", "--database", database).splitlines() == [
        f"node 100 ids 1 to 4 attested, by 100, 200: {SUMS}",
        "node 100 ids 5 to 5 not attested yet, by 100: 1 payer, 1 message, 100 bytes, "
        "3000 byte-days",
        "node 200 ids 1 to 1 attested, by 100, 200: 1 payer, 1 message, 100 bytes, 3000 byte-days",
    ]
    [only, _] = json.loads(command("list", "--database", database, "--originator", A, "--json"))
    assert (only["first_id"], only["last_id"], only["signers"]) == (1, 4, [A, B])


def test_list__refused__names_the_node_and_the_difference(database: Path) -> None:
    [line] = command("list", "--refused", "--database", database).splitlines()

    assert line == ("node 200 ids 1 to 1 refused: it signed another report of ids 1 to 1, too")


def test_show__report_of_an_id__has_the_totals(database: Path) -> None:
    lines = command("show", "--database", database, "--originator", A, "--id", 3).splitlines()

    assert lines[1:] == [
        f"payer {hex0x(PAYERS[0])}: 2 messages, 600 bytes, 18000 byte-days",
        f"payer {hex0x(PAYERS[1])}: 2 messages, 400 bytes, 12000 byte-days",
    ]


def test_show__id_that_no_report_covers__is_refused(database: Path) -> None:
    options = "--database", database, "--originator", A, "--id", 6

    assert "one that a payer report covers" in command("show", *options, fails=True)


@pytest.mark.conforms("T6")
def test_export__each_format__has_every_total_exactly(database: Path, tmp_path: Path) -> None:
    lines, table = tmp_path / "reports.json", tmp_path / "reports.parquet"

    said = command("export", "--database", database, "--output", lines)
    command("export", "--database", database, "--format", "parquet", "--output", table)

    assert said == f"{lines}: 3 payer reports\n"
    found = [json.loads(each) for each in lines.read_text().splitlines()]
    assert [list(each["attestations"]) for each in found] == [["200"], [], ["100"]]
    by_json = [
        {name: each[name] for name in ("originator_id", "first_id", "last_id", "is_attested")}
        | total
        for each in found
        for total in each["totals"]
    ]
    assert pq.read_table(table).to_pylist() == by_json
    assert [each["byte_days"] for each in by_json] == [18000, 12000, 3000, 3000]


def test_export__to_a_file_that_exists__is_refused(database: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")

    options = "--database", database, "--output", taken

    assert "a new file" in command("export", *options, fails=True)
    assert taken.read_text() == "mine"


def test_prove__a_payer__verifies_against_what_the_originator_signed(database: Path) -> None:
    options = "--database", database, "--originator", A, "--id", 1

    found: dict[str, Any] = json.loads(command("prove", hex0x(PAYERS[1]), *options))

    total = PayerTotal(**found["total"] | {"payer": PAYERS[1]})
    proof = [parse_bytes(each) for each in found["proof"]]
    verify_total(parse_bytes(found["unsigned_payer_report"]), found["index"], total, proof)
    assert "a total of payer" in command("prove", "0x" + "09" * 20, *options, fails=True)
    assert "an address of 20 bytes" in command("prove", "0x09", *options, fails=True)
