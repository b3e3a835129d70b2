"""An operator asks ``node status`` alone: what is wrong with the node, and what is to be done?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from chainkit_node.cli import node as node_group
from chainkit_node.cli import status as status_module
from support.faulty_node import (
    AUTHORITY,
    FaultyNode,
    faulty_node,
)
from support.indexer.loop_results import logging_restored
from support.node_faults import FAULTS, Fault
from support.project import DOCS, ROOT
from support.reporting import register

URL = "http://127.0.0.1:9464"


@contextmanager
def asked(node: FaultyNode, patch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """The command, which asks this node's page."""
    page = node.page()

    def fetch(url: str, name: str) -> tuple[int, bytes]:
        answer = page.status()
        return answer.status, answer.body

    def command(*options: str) -> Result:
        words = ["status", "--url", URL, *options]
        return CliRunner().invoke(node_group, words, standalone_mode=False)

    patch.setattr(status_module, "_fetch", fetch)
    yield command


def test_status__node_that_is_well__needs_no_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logging_restored(), faulty_node(tmp_path) as node:
        register(node.host)
        node.certified(AUTHORITY)
        with asked(node, monkeypatch) as command:
            result = command()

    assert (result.return_value, result.exception) == (0, None)
    assert "attention    none" in result.output


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_status__each_fault__says_what_is_wrong_and_what_to_do(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logging_restored(), faulty_node(tmp_path, limits=fault.limits) as node:
        if fault.is_registered:
            register(node.host)
        fault.breaks(node)
        with asked(node, monkeypatch) as command:
            found, as_text = command("--json"), command()

    check_answer(fault, found, as_text)


def check_answer(fault: Fault, found: Result, as_text: Result) -> None:
    page = f"docs/runbook/{fault.page}.md"
    assert (ROOT / page).exists()
    if fault.reason is None:
        assert fault.said in str(as_text.exception) and page in str(as_text.exception)
        return
    assert found.return_value == as_text.return_value == 1
    reasons = json.loads(found.output)["attention"]
    assert any(
        (each["reason"], each["page"]) == (fault.reason, page) and fault.said in each["text"]
        for each in reasons
    ), reasons
    # Long reasons go on in the next line.
    assert fault.said in " ".join(as_text.output.split())
    assert f"what to do: {page}" in as_text.output


def test_status__process_that_does_not_run__says_so_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetch(url: str, name: str) -> tuple[int, bytes]:
        raise requests.ConnectionError("Connection refused")

    monkeypatch.setattr(status_module, "_fetch", fetch)

    result = CliRunner().invoke(node_group, ["status", "--url", URL], standalone_mode=False)

    said = "monitor at 127.0.0.1:9464: expected an answer, got connection refused"
    assert str(result.exception) == f"{said} (docs/runbook/indexer-down.md)"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_guide__each_fault__has_a_row_with_its_page(fault: Fault) -> None:
    rows = (DOCS / "node.md").read_text().splitlines()

    [row] = [each for each in rows if each.startswith(f"| {fault.name} |")]
    assert f"(runbook/{fault.page}.md)" in row
