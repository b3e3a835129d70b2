"""docs/scale.md has the tables that the benchmarks' figures make."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.network.page import ROWS as NETWORK_ROWS
from benchmarks.node.page import ROWS as NODE_ROWS
from chainkit.errors import ConfigurationError
from tools import scale


def section(title: str, rows: dict[str, str], values: dict[str, str]) -> str:
    lines = [f"| {what} | {values.get(name, '2,000.0')} |" for name, what in rows.items()]
    return "\n".join((f"# {title}", "", "| figure |  |", "| --- | ---: |", *lines, ""))


def figures(**values: str) -> str:
    node = section("How fast a node is", dict(NODE_ROWS), values)
    return node + "\n" + section("How fast nodes are together", dict(NETWORK_ROWS), values)


COSTS = scale.read_costs(
    figures(
        catch_up_cpu_us="250.0",
        recover_floor_cpu_us="150.0",
        catch_up_per_s="5,000.0",
        row_bytes="1,000.0",
    )
)


def rows(name: str, costs: scale.Costs = COSTS) -> list[list[str]]:
    page = scale.with_tables(f"<!-- begin {name} -->\nold\n<!-- end {name} -->\n", costs)
    lines = page.splitlines()
    assert (lines[0], lines[-1]) == (f"<!-- begin {name} -->", f"<!-- end {name} -->")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[3:-1]]


def test_page__as_it_is__has_the_tables_of_the_figures() -> None:
    checked = CliRunner().invoke(scale.main, ["--check"])

    assert checked.exit_code == 0, checked.output


def test_read_costs__figures_of_both_benchmarks__are_taken_by_their_rows() -> None:
    assert (COSTS.take_us, COSTS.originated_per_s) == (250.0, 2000.0)
    assert 400 < COSTS.wire_bytes < 700


def test_read_costs__a_row_is_gone__is_named() -> None:
    page = figures().replace(NETWORK_ROWS["row_bytes"], "something else")

    with pytest.raises(ConfigurationError, match=NETWORK_ROWS["row_bytes"]):
        scale.read_costs(page)


def test_years__average_rates__take_the_envelopes_of_365_days() -> None:
    assert rows("years")[0] == ["1", "31.5", "31.5"]
    assert [row[0] for row in rows("years")] == ["1", "10", "100", "1,000"]


def test_rates__ten_thousand_a_second_among_20__each_verifies_nineteen_twentieths() -> None:
    rate, megabits, signatures, cores, own, disk = rows("rates")[2]

    assert (rate, signatures, cores, own, disk) == ("10,000", "19,000", "2.38", "500", "864")
    assert float(megabits) == pytest.approx(9_500 * COSTS.wire_bytes * 8 / 1e6, rel=0.01)


def test_ends__verifying_takes_longest__comes_first() -> None:
    assert rows("ends")[0] == ["PostgreSQL's COPY, from one connection", "2,000"]

    fast = replace(COSTS, streamed_per_s=1e6, originated_per_s=1e5, copied_per_s=1e5)
    assert rows("ends", fast)[0] == ["verifying and storing others', on one core", "4,210"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (1.0, "1.00"), (12.34, "12.3"), (98_765, "98,800")],
)
def test_shown__figures__keep_three_digits(value: float, text: str) -> None:
    assert scale.shown(value) == text


def test_main__other_figures__check_fails_and_a_run_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, page = tmp_path / "benchmarks.md", tmp_path / "scale.md"
    found.write_text(figures())
    page.write_text("<!-- begin ends -->\nold\n<!-- end ends -->\n")
    monkeypatch.setattr(scale, "FIGURES", found)
    monkeypatch.setattr(scale, "PAGE", page)

    assert CliRunner().invoke(scale.main, ["--check"]).exit_code == 1
    assert "old" in page.read_text()
    assert CliRunner().invoke(scale.main, []).exit_code == 0
    assert CliRunner().invoke(scale.main, ["--check"]).exit_code == 0
    assert "| messages/s |" in page.read_text()
