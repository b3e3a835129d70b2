"""Every command that asks for logs by ranges, behind an endpoint that gives few blocks at once.

``audit export-chain`` asks for receipts, block by block, and so meets no such limit; what the
indexer does is in ``tests/indexer/test_fault_limits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import error, range_limit
from support.vectors import load

Command = Callable[[LocalChain, str, Path], Outcome]

BLOCKS = (10, 1)
PROVIDERS = ("Alchemy", "Infura", "QuickNode", "Ankr", "Cloudflare", "dRPC")


def wordings() -> list[dict[str, Any]]:
    """Return the first refusal of a range of each provider."""
    ranges = [case for case in load("range_refusals") if case["kind"] == "range"]
    return [next(case for case in ranges if case["provider"] == provider) for provider in PROVIDERS]


def limit(case: dict[str, Any], blocks: int) -> Fault:
    more = {"data": case["data"]} if "data" in case else {}
    refusal = error(case["code"], case["message"], **more)
    return range_limit(f"{case['provider']}, {blocks} blocks", refusal, blocks=blocks)


def verify(chain: LocalChain, url: str, folder: Path) -> Outcome:
    return run("contracts", "verify", "--rpc", url, "--deployment", chain.record_path, "--json")


def history(chain: LocalChain, url: str, folder: Path) -> Outcome:
    return run("registry", "history", "--rpc", url, "--deployment", chain.record_path)


def council_log(chain: LocalChain, url: str, folder: Path) -> Outcome:
    place = ("--deployment", chain.record_path)
    council = folder / "council.json"
    member = ("--rpc", chain.url, *place, "--council", council)
    written = run("council", "init", dev_address(1), *member)
    assert written.code == 0, written.err
    return run("council", "log", "--rpc", url, *place, "--council", council)


@pytest.mark.parametrize("command", [verify, history, council_log])
def test_read_logs__range_limited_in_any_words__ends_as_without_a_limit(
    command: Command, local_chain: LocalChain, tmp_path: Path
) -> None:
    local_chain.mine(120)

    def told(url: str, name: str) -> tuple[int, str]:
        folder = tmp_path / name
        folder.mkdir()
        outcome = command(local_chain, url, folder)
        return outcome.code, outcome.out.replace(str(folder), "FOLDER")

    expected = told(local_chain.url, "free")
    assert expected[0] == 0
    with FaultProxy(local_chain.url) as proxy:
        for number, case in enumerate(wordings()):
            for blocks in BLOCKS:
                fault = limit(case, blocks)
                proxy.arm(fault)

                assert told(proxy.url, f"{number}-{blocks}") == expected, case

                proxy.lift()
                assert proxy.delivered[fault.name] >= 1, case
