"""Every command that reads logs, at an endpoint that limits how many blocks it gives at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.audit.export_folders import contents_of
from support.chains.chain import dev_secret
from support.chains.exported_chain import exported
from support.command_line import run, write_keystore
from support.council.scene import CouncilScene
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import error, range_limit
from support.vectors import load

BLOCKS = 100
"""More than the indexer reads one by one near the head."""

LIMITS = (10, 1)
WORDINGS = (
    "up to a 10 block range",
    "range 1000000 exceeds limit of 10000",
    "eth_getLogs is limited to a 5 range",
    "block range is too wide",
    "ranges over 10000 blocks are not supported on free plan",
    "'fromBlock'-'toBlock' range too large",
)
REFUSALS = [
    next(case for case in load("range_refusals") if words in case["message"]) for words in WORDINGS
]
"""The wordings of six providers."""


def limited(case: dict[str, Any], blocks: int) -> Fault:
    more = {"data": case["data"]} if "data" in case else {}
    refusal = error(case["code"], case["message"], **more)
    return range_limit(case["provider"], refusal, blocks=blocks)


@pytest.fixture
def proxy(scene: CouncilScene) -> Iterator[FaultProxy]:
    scene.chain.mine(BLOCKS)
    with FaultProxy(scene.chain.url) as proxy:
        yield proxy


def places(scene: CouncilScene, url: str) -> list[str]:
    return ["--rpc", url, "--deployment", str(scene.chain.record_path)]


@pytest.mark.parametrize("blocks", LIMITS)
@pytest.mark.parametrize("case", REFUSALS, ids=[case["provider"] for case in REFUSALS])
def test_verify__endpoint_limits_ranges__is_the_same(
    case: dict[str, Any], blocks: int, scene: CouncilScene, proxy: FaultProxy
) -> None:
    command = ("contracts", "verify", "--json")
    whole = run(*command, *places(scene, scene.chain.url))
    proxy.arm(limited(case, blocks))

    outcome = run(*command, *places(scene, proxy.url))

    assert whole.code in (0, 1)
    assert (outcome.code, outcome.err) == (whole.code, whole.err)
    assert outcome.content == whole.content
    assert proxy.delivered.total() > 0


@pytest.mark.parametrize("blocks", LIMITS)
@pytest.mark.parametrize("command", [("registry", "history"), ("council", "log")])
def test_read_history__endpoint_limits_ranges__is_the_same(
    command: tuple[str, ...], blocks: int, scene: CouncilScene, proxy: FaultProxy
) -> None:
    files = ("--council", scene.folder / "council.json") if command[0] == "council" else ()
    whole = run(*command, *files, "--json", *places(scene, scene.chain.url))
    proxy.arm(limited(REFUSALS[0], blocks))

    outcome = run(*command, *files, "--json", *places(scene, proxy.url))

    assert whole.code in (0, 1)
    assert (outcome.code, outcome.content) == (whole.code, whole.content)
    assert proxy.delivered.total() > 0


@pytest.mark.parametrize("blocks", LIMITS)
def test_index__endpoint_limits_ranges__reads_up_to_the_head(
    blocks: int, scene: CouncilScene, proxy: FaultProxy, tmp_path: Path
) -> None:
    keystore = write_keystore(tmp_path, dev_secret(1))
    files = [*keystore, "--database", str(tmp_path / "node.db")]
    proxy.arm(limited(REFUSALS[0], blocks))

    stepped = run("index", "step", *files, *places(scene, proxy.url))
    followed = run("index", "run", "--until-idle", *files, *places(scene, proxy.url))
    status = run("index", "status", "--json", *files[-2:], "--rpc", scene.chain.url)

    assert stepped.code == 0, stepped.err
    assert followed.code == 0, followed.err
    assert status.content["cursor"]["number"] == scene.chain.head().number
    assert proxy.delivered.total() > 0


@pytest.mark.parametrize("blocks", LIMITS)
def test_export_chain__endpoint_limits_ranges__gives_the_same_bytes(
    blocks: int, scene: CouncilScene, proxy: FaultProxy, tmp_path: Path
) -> None:
    proxy.arm(limited(REFUSALS[0], blocks))

    exported(scene.chain, tmp_path / "limited", url=proxy.url)

    exported(scene.chain, tmp_path / "whole")
    assert contents_of(tmp_path / "limited") == contents_of(tmp_path / "whole")
