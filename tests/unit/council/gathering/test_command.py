"""`chainkit council gather` before it asks any node."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from chainkit.cli.council.gather import echo_page
from chainkit.council.gathering.folder import ReportFolder
from chainkit.council.gathering.gatherer import Gatherer, Host
from chainkit.council.gathering.page import gather_page
from chainkit.errors import EndpointUnavailable
from chainkit.types import BlockReference
from support.audit.identities import key_of
from support.command_line import Outcome, run
from support.council.hosts import Answer, FakeNetwork, HonestHost, at_once, hosted
from support.council.triage import registered
from support.project import ROOT

DEAD = "http://127.0.0.1:1"


def gather(tmp_path: Path, *options: object) -> Outcome:
    record = ("--rpc", DEAD, "--deployment", tmp_path / "deployment.json")
    return run("council", "gather", tmp_path / "evidence", *record, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--node", "100"), "--node: expected ID=URL, such as 100=https://node.example, got 100"),
        (("--node", "x=http://a"), "--node: expected ID=URL"),
        (("--node", "1="), "--node: expected ID=URL"),
        (("--node", "1=http://a", "--node", "1=http://b"), "expected node 1 once, got twice"),
        (("--after", "-1"), "is not in the range"),
        (("--seconds", "0"), "is not in the range"),
    ],
)
def test_gather__wrong_option__is_refused_before_anything_is_asked(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    outcome = gather(tmp_path, *options)

    assert outcome.code == 2
    assert words in outcome.err
    assert not (tmp_path / "evidence").exists()


def test_gather__without_grpcio__names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "chainkit.council.gathering.transport", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)

    outcome = gather(tmp_path)

    assert outcome.code == 2
    assert "expected the package grpc, got none" in outcome.err
    assert "council.txt '.[council]' in a clone" in " ".join(outcome.err.split())


def test_gather__example_of_the_guide__is_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_client(host_id: int) -> bytes:
        return hosted(host_id, 300, 1, time_ns=1, is_from_node=False)

    def foreign(number: int) -> bytes:
        return hosted(300, 100, number, key=key_of(1000 + number))

    async def gone(_: bytes) -> bytes:
        words = "UNAVAILABLE Connection refused"
        raise EndpointUnavailable("node at gone.example:443", "a page of reports", words)

    async def sleep(_: float) -> None:
        return None

    reports = {
        100: [of_client(100), hosted(100, 500, 2), hosted(100, 400, 3)],
        200: [of_client(200)],
        300: [foreign(1), foreign(2), foreign(3), hosted(300, 100, 4)],
        400: [of_client(400)],
    }
    answers: dict[str, Answer] = {
        str(node_id): at_once(HonestHost(each).answer) for node_id, each in reports.items()
    }
    answers["500"] = gone
    folder = ReportFolder(tmp_path)
    gatherer = Gatherer(folder, FakeNetwork(answers).connect, folder.share(5, 60), sleep=sleep)
    hosts = [Host(registered(int(each), int(each) != 400).node, each) for each in answers]
    results = asyncio.run(gatherer.gather(hosts))
    block = BlockReference(40, bytes.fromhex("28ce7bff") + bytes(28))

    echo_page(gather_page(results, 31337, block, 0), block, Path("evidence"))

    guide = (ROOT / "docs" / "triage.md").read_text()
    start = "$ chainkit council gather evidence --rpc https://node.example\n"
    example = guide.partition(start)[2].partition("$ chainkit")[0]
    assert capsys.readouterr().out == example
