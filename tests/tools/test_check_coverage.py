from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools import check_coverage
from tools.check_coverage import (
    CoverageUnmeasured,
    FileCoverage,
    add_statements,
    contract_files,
    main,
    read_lcov,
    shortfalls,
    table,
)

NAME = "contracts/Counter.sol"
LCOV = """TN:
SF:contracts/Counter.sol
DA:5,302
FN:5,Counter.count
FNDA:302,Counter.count
DA:6,302
BRDA:6,0,0,17
BRDA:6,0,1,285
FNF:1
FNH:1
LF:2
LH:2
BRF:2
BRH:2
end_of_record
"""
SUMMARY = """Wrote LCOV report.

| File                 | % Lines       | % Statements  | % Branches    | % Funcs       |
|----------------------|---------------|---------------|---------------|---------------|
| contracts/Counter.sol | 100.00% (2/2) | 100.00% (3/3) | 100.00% (2/2) | 100.00% (1/1) |
| Total                | 100.00% (2/2) | 100.00% (3/3) | 100.00% (2/2) | 100.00% (1/1) |
"""

Measured = Callable[[str, str], dict[str, FileCoverage]]


@pytest.fixture
def measured() -> Measured:
    def measure(lcov: str, summary: str) -> dict[str, FileCoverage]:
        files = read_lcov(lcov)
        add_statements(files, summary)
        return files

    return measure


def test_find_shortfalls__everything_reached__are_none(measured: Measured) -> None:
    files = measured(LCOV, SUMMARY)

    assert shortfalls([NAME], files) == []


@pytest.mark.parametrize(
    ("entry", "unreached", "shortfall"),
    [
        ("DA:6,302", "DA:6,0", "line 6: never reached"),
        ("BRDA:6,0,1,285", "BRDA:6,0,1,0", "line 6: branch 1 never reached"),
        ("BRDA:6,0,0,17", "BRDA:6,0,0,-", "line 6: branch 0 never reached"),
        ("FNDA:302,Counter.count", "FNDA:0,Counter.count", "function Counter.count: never reached"),
    ],
)
def test_find_shortfalls__one_part_never_reached__name_it(
    measured: Measured, entry: str, unreached: str, shortfall: str
) -> None:
    files = measured(LCOV.replace(entry, unreached), SUMMARY)

    assert shortfalls([NAME], files) == [f"{NAME}, {shortfall}"]


def test_find_shortfalls__statement_never_reached__tell_how_many(measured: Measured) -> None:
    files = measured(LCOV, SUMMARY.replace("100.00% (3/3)", "66.67% (2/3)"))

    assert shortfalls([NAME], files) == [f"{NAME}, 1 of 3 statements never reached"]


def test_find_shortfalls__file_missing_from_the_report__name_it(measured: Measured) -> None:
    files = measured(LCOV, SUMMARY)

    found = shortfalls([NAME, "contracts/New.sol"], files)

    assert found == ["contracts/New.sol: expected in forge's report, missing"]


def test_find_shortfalls__file_with_nothing_to_reach__may_be_missing_but_not_unreached(
    measured: Measured,
) -> None:
    proxy = "contracts/SequencedLogProxy.sol"
    files = measured(LCOV.replace("DA:6,302", "DA:6,0"), SUMMARY)

    assert shortfalls([proxy], {}) == []
    assert shortfalls([proxy], {proxy: files[NAME]}) == [f"{proxy}, line 6: never reached"]


def test_add_statements__no_row_for_a_file__is_refused() -> None:
    with pytest.raises(CoverageUnmeasured, match=r"expected a row for contracts/Counter\.sol"):
        add_statements(read_lcov(LCOV), "")


def test_print_table__two_files__shows_shares_and_what_is_missing(measured: Measured) -> None:
    lines = table([NAME, "contracts/New.sol"], measured(LCOV, SUMMARY)).splitlines()

    assert lines[0].split() == ["lines", "statements", "branches", "functions"]
    assert lines[1].split() == [NAME, "2/2", "3/3", "2/2", "1/1"]
    assert lines[2].split() == ["contracts/New.sol", "missing"]


def test_list_contracts__every_folder__leaves_interfaces_out(tmp_path: Path) -> None:
    for name in ("A.sol", "base/B.sol", "interfaces/I.sol"):
        path = tmp_path / "contracts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert contract_files(tmp_path) == ["contracts/A.sol", "contracts/base/B.sol"]


@pytest.mark.parametrize(("hits", "code"), [("285", 0), ("0", 1)])
def test_run__branch_reached_or_not__exits_with_the_answer(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, hits: str, code: int
) -> None:
    files = measured(LCOV.replace("BRDA:6,0,1,285", f"BRDA:6,0,1,{hits}"), SUMMARY)
    monkeypatch.setattr(check_coverage, "measure", lambda: files)
    monkeypatch.setattr(check_coverage, "contract_files", lambda _: [NAME])

    assert CliRunner().invoke(main).exit_code == code


def test_run__forge_cannot_measure__exits_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, FileCoverage]:
        raise CoverageUnmeasured("forge coverage", "a report", "exit code 1")

    monkeypatch.setattr(check_coverage, "measure", fail)

    assert CliRunner().invoke(main).exit_code == 2
