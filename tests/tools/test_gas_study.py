from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from chainkit.errors import ConfigurationError
from tools.gas_study import __main__ as command
from tools.gas_study.cases import (
    MESSAGE_CASES,
    PUBLISHED_CASES,
    PUBLISHED_GAS_PER_SECOND,
    PUBLISHED_SIZES,
    SIZES,
    MessageCase,
    counting_payload,
    random_payload,
)
from tools.gas_study.figures import Figures, difference
from tools.gas_study.measuring_chain import calldata_gas, floor_gas
from tools.gas_study.page import page
from tools.gas_study.registry import NODE_COUNTS, REGISTRY_CASES, registry_calls
from tools.gas_study.rows import Row, differences, read_rows, rows_as_json

FRESH_SLOT_SURCHARGE = 17_100


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(command.SNAPSHOT)


@pytest.fixture(scope="module")
def figures(rows: list[Row]) -> Figures:
    return Figures(rows)


@pytest.mark.parametrize("case", PUBLISHED_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("size", PUBLISHED_SIZES)
def test_reproduce__xip_49s_construction__gas_is_as_published(
    figures: Figures, case: MessageCase, size: int
) -> None:
    row = figures.published(case.name, size, "cancun")
    assert row.gas == row.published_gas == case.published[size]


@pytest.mark.parametrize("case", PUBLISHED_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("size", PUBLISHED_SIZES)
def test_divide__gas_per_second_of_xip_49__messages_per_second_are_as_published(
    case: MessageCase, size: int
) -> None:
    messages = PUBLISHED_GAS_PER_SECOND // case.published[size]
    assert messages == case.published_per_second[size]


@pytest.mark.parametrize("case", ["add-message", "add-identity-update"])
def test_publish__each_size__costs_no_more_than_docs_say(figures: Figures, case: str) -> None:
    ours = {size: figures.message(case, size, "cancun").gas for size in SIZES}
    bare = {size: figures.message("complete-event", size, "cancun").gas for size in SIZES}
    proxied = {size: figures.message("complete-event-proxy", size, "cancun").gas for size in SIZES}
    assert [size for size in SIZES if ours[size] > bare[size]] == [50_000, 51_200, 100_000]
    assert all(ours[size] < proxied[size] + FRESH_SLOT_SURCHARGE for size in SIZES)
    assert ours[2_000] < 96_013 and ours[50_000] < 1_287_619


@pytest.mark.parametrize("size", [size for size in SIZES if size >= 2_000])
def test_publish__from_2000_bytes_under_osaka__pays_the_floor(figures: Figures, size: int) -> None:
    assert figures.message("complete-event", size, "osaka").floor_binds
    assert figures.message("add-message", size, "osaka").floor_binds


@pytest.mark.parametrize("case", MESSAGE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("size", SIZES)
def test_publish__under_osaka__costs_execution_or_the_floor(
    figures: Figures, case: MessageCase, size: int
) -> None:
    row = figures.message(case.name, size, "osaka")
    assert row.floor_gas is not None
    assert row.gas == max(figures.message(case.name, size, "cancun").gas, row.floor_gas)


@pytest.mark.parametrize("size", SIZES)
def test_parts__of_a_message__add_up_to_what_it_costs(figures: Figures, size: int) -> None:
    parts = figures.parts(size, "cancun")
    assert sum(parts.values()) == figures.message("add-message", size, "cancun").gas
    assert min(parts.values()) > 0


def test_list_a_page__however_many_nodes__costs_the_same(figures: Figures) -> None:
    pages = [case for case in REGISTRY_CASES if "Page" in case]
    assert pages
    for case in pages:
        costs = [figures.registry(case, nodes, "cancun").gas for nodes in NODE_COUNTS[1:]]
        assert max(costs) - min(costs) <= 2 * 12


@pytest.mark.parametrize("case", ["updateHealth, to false", "updateHttpAddress", "getNode"])
def test_call_on_one_node__however_many_nodes__differs_by_the_ids_bytes(
    figures: Figures, case: str
) -> None:
    costs = [figures.registry(case, nodes, "cancun").gas for nodes in NODE_COUNTS]
    assert [cost - costs[0] for cost in costs] == [0, 12, 12, 24]


def test_transfer__holders_only_node__is_cheaper_by_the_refund(figures: Figures) -> None:
    costs = [figures.registry("transferFrom", nodes, "cancun").gas for nodes in NODE_COUNTS]
    assert [cost - costs[0] for cost in costs] == [0, 4_800 + 12, 4_800 + 12, 4_800 + 24]


def test_add_node__key_with_a_zero_byte__costs_12_less(figures: Figures) -> None:
    costs = [figures.registry("addNode", nodes, "cancun").gas for nodes in NODE_COUNTS]
    accounts = ["0x" + "11" * 20] * 3
    data = [registry_calls(accounts, nodes)["addNode"].data for nodes in NODE_COUNTS]
    zeros = [call.count(0) - data[0].count(0) for call in data]
    assert [costs[0] - cost for cost in costs] == [12 * count for count in zeros] == [0, 0, 0, 12]


def test_page__beside_the_published_figures__says_where_ours_is_above(figures: Figures) -> None:
    text = " ".join(page(figures).split())
    below, above = text.split("`addMessage` is below them at ")[1].split(", and above at ")
    assert [f"{size} bytes" in below for size in ("2,000", "2,048", "50,000")] == [True] * 3
    assert above.startswith("51,200 bytes (1,298,053, +0.81 %).")


def test_documents__of_the_snapshot__are_the_committed_ones(rows: list[Row]) -> None:
    for path, text in command.documents(rows, PUBLISHED_GAS_PER_SECOND).items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_price__calldata__counts_zero_and_other_bytes() -> None:
    data = b"\x00\x00\x00\x01\x02"
    assert calldata_gas(data) == 3 * 4 + 2 * 16
    assert floor_gas(data) == 21_000 + 3 * 10 + 2 * 40


def test_payloads__of_a_size__have_it_and_the_zeros_they_should() -> None:
    assert [len(random_payload(size)) for size in SIZES] == list(SIZES)
    assert not any(random_payload(size).count(0) for size in SIZES)
    assert random_payload(512) == random_payload(512)
    assert counting_payload(2_048).count(0) == 8


@pytest.mark.parametrize(
    ("gas", "expected"), [(1_000, "0.00 %"), (1_015, "+1.50 %"), (993, "-0.70 %")]
)
def test_difference__in_percent__has_its_sign(gas: int, expected: str) -> None:
    assert difference(gas, 1_000) == expected


def _row(gas: int = 100, nodes: int | None = 1) -> Row:
    return Row("registry", "addNode", None, nodes, "osaka", gas, None, 50)


def test_compare__equal_rows__no_difference() -> None:
    assert list(differences([_row()], [_row()])) == []


def test_compare__another_figure__names_the_cell() -> None:
    assert list(differences([_row()], [_row(gas=101)])) == [
        "addNode, 1 nodes, osaka (registry): expected 100 gas, floor 50, got 101 gas, floor 50"
    ]


def test_compare__cell_gone_and_cell_new__names_both() -> None:
    assert list(differences([_row()], [_row(nodes=2)])) == [
        "addNode, 1 nodes, osaka (registry): expected 100 gas, got no such cell",
        "addNode, 2 nodes, osaka (registry): expected no such cell, got 100 gas",
    ]


def test_read__what_was_written__same_rows(tmp_path: Path) -> None:
    path = tmp_path / "gas.json"
    path.write_text(rows_as_json([_row(), _row(nodes=2)]))
    assert read_rows(path) == [_row(), _row(nodes=2)]


@pytest.mark.parametrize("text", ["", "{}1", '[{"gas": 1}]', "[1]"])
def test_read__something_else__configuration_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gas.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="rows of the gas study"):
        read_rows(path)


@pytest.fixture
def documents_folder(
    tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The committed files' copies: what the command reads and writes."""
    monkeypatch.setattr(command, "DOCUMENTS", tmp_path)
    monkeypatch.setattr(command, "SNAPSHOT", tmp_path / "gas.json")
    monkeypatch.setattr(command, "RESULT", tmp_path / "build" / "gas.json")
    for path, text in command.documents(rows, PUBLISHED_GAS_PER_SECOND).items():
        path.write_text(text, encoding="utf-8")
    yield tmp_path


def _run(monkeypatch: pytest.MonkeyPatch, rows: list[Row], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(command, "measured_rows", lambda: iter(rows))
    result = CliRunner().invoke(command.main, arguments)
    return result.exit_code, result.output


def test_check__nothing_changed__exits_0_and_writes_the_rows(
    documents_folder: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(monkeypatch, rows, "--check")[0] == 0
    assert read_rows(documents_folder / "build" / "gas.json") == rows


def test_check__gas_changed__exits_1_names_the_cell_and_keeps_the_snapshot(
    documents_folder: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = [replace(rows[0], gas=rows[0].gas + 1), *rows[1:]]
    code, output = _run(monkeypatch, changed, "--check")
    assert code == 1
    assert f"{rows[0].cell}: expected {rows[0].gas:} gas" in output
    assert read_rows(documents_folder / "gas.json") == rows


def test_check__page_edited_by_hand__exits_1(
    documents_folder: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    (documents_folder / "gas.md").write_text("another text")
    code, output = _run(monkeypatch, rows, "--check")
    assert code == 1
    assert "docs/gas.md" in output


def test_check__no_snapshot__exits_2(
    documents_folder: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    (documents_folder / "gas.json").unlink()
    assert _run(monkeypatch, rows, "--check")[0] == 2


def test_measure__another_gas_per_second__page_shows_it(
    documents_folder: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(monkeypatch, rows, "--gas-per-second", "14000000")[0] == 0
    assert "At 14,000,000 gas per second" in (documents_folder / "gas.md").read_text()
