"""Limits of callers: the file, the options that take precedence, and the table that lists them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from chainkit.errors import ConfigurationError
from chainkit_node.cli.limits import LimitOptions, Limits, limit_options, read_limits
from chainkit_node.cli.options import ListenOptions
from chainkit_node.process import ServingSettings
from chainkit_node.settings import NodeLimits, PayerLimits, StorageLimits, StrangerLimits
from support.project import ROOT

LISTENING = ListenOptions("127.0.0.1:0", None, None, False)


def written(folder: Path, content: Any) -> Path:
    path = folder / "limits.json"
    path.write_text(json.dumps(content))
    return path


def settings(*arguments: str) -> ServingSettings:
    @click.command()
    @limit_options
    def command(limits: LimitOptions) -> ServingSettings:
        return limits.serving(LISTENING)

    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert isinstance(result.return_value, ServingSettings)
    return result.return_value


def test_limits__nothing_is_said__have_defaults(tmp_path: Path) -> None:
    found = settings()

    assert (found.strangers, found.nodes) == (StrangerLimits(), NodeLimits())
    assert (found.payers, found.storage) == (PayerLimits(), StorageLimits())
    assert found.report_rate.per_minute == 30
    assert read_limits(written(tmp_path, {})) == Limits()


def test_limits__file_and_options__options_take_precedence(tmp_path: Path) -> None:
    strangers = {"streams": 7, "requests_per_second": 8, "connections": 0}
    payers = {"bytes_per_second": 5, "allowed": ["0x" + "aB" * 20]}
    sections = {"payers": payers, "storage": {"database_bytes": 10**12}}
    path = written(tmp_path, {"strangers": strangers, "nodes": {"calls": 9}, **sections})

    found = settings("--limits", str(path), "--streams", "0", "--streams-per-address", "3")

    assert found.strangers == StrangerLimits(
        streams=0, requests_per_second=8, connections=0, streams_of_one=3
    )
    assert found.nodes == NodeLimits(calls=9)
    assert found.payers == PayerLimits(bytes_per_second=5, allowed=("0x" + "aB" * 20,))
    assert found.storage == StorageLimits(database_bytes=10**12)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            {"stranger": {}},
            "expected one of strangers, nodes, payers, storage, edge, got another field",
        ),
        ({"payers": {"allowed": "0x12"}}, "expected a list, got str (payers.allowed)"),
        ({"payers": {"allowed": ["0x12"]}}, "0x and 40 hex digits, got '0x12' (payers.allowed[0])"),
        ({"edge": {"quiet_seconds": 0}}, "an integer from 1, got 0 (edge.quiet_seconds)"),
        ({"edge": {"buffer_bytes": 9}}, "an integer from 65536, got 9 (edge.buffer_bytes)"),
        ({"edge": {"connections": 9}}, "(edge.connections)"),
        ({"payers": {"burst_bytes": 0}}, "an integer from 1, got 0 (payers.burst_bytes)"),
        ({"nodes": {"connections": 1}}, "got another field (nodes.connections)"),
        ({"nodes": 5}, "expected an object, got int (nodes)"),
        ({"nodes": {"calls": "9"}}, "expected an integer from 0, got '9' (nodes.calls)"),
        ({"nodes": {"calls": True}}, "expected an integer from 0, got True (nodes.calls)"),
        ({"strangers": {"streams": -1}}, "integer from 0, got -1 (strangers.streams)"),
        (
            {"strangers": {"request_burst": 0}},
            "expected an integer from 1, got 0 (strangers.request_burst)",
        ),
        ([], "expected an object, got list"),
    ],
)
def test_read_limits__unknown_field_or_value__names_file_and_field(
    tmp_path: Path, content: Any, said: str
) -> None:
    path = written(tmp_path, content)

    with pytest.raises(ConfigurationError) as caught:
        read_limits(path)

    assert str(caught.value).startswith(f"limits {path}: ")
    assert said in str(caught.value)


def test_read_limits__several_faults__reports_all_in_one_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"nodes": {"calls": -1, "topics": 1}, "strangers": {"streams": None}})

    with pytest.raises(ConfigurationError) as caught:
        read_limits(path)

    assert caught.value.place == "strangers.streams, nodes.topics, nodes.calls"


def test_table_of_limits__says_each_field_with_its_default() -> None:
    text = (ROOT / "docs" / "node.md").read_text()
    _, _, behind = text.partition("| field | `strangers` | `nodes` | above it |\n")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)?[^|]*\| ([\d,]+)?[^|]*\|", behind, re.MULTILINE)
    columns: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for name, *cells in rows[: len(asdict(StrangerLimits()))]:
        for column, cell in zip(columns, cells, strict=True):
            if cell:
                column[name] = int(cell.replace(",", ""))

    assert columns == (asdict(StrangerLimits()), asdict(NodeLimits()))
    _, _, behind = text.partition("| section and field | default | below or above it |\n")
    own = dict(re.findall(r"^\| `(\w+\.\w+)` \| ([\d,]+|none)", behind, re.MULTILINE))
    assert own == {
        f"{section}.{name}": f"{value:,}" if isinstance(value, int) else "none"
        for section in ("payers", "storage")
        for name, value in asdict(Limits()._asdict()[section]).items()
    }
