"""`chainkit contracts upgrade` on a local chain, and what tells that nothing was sent."""

from __future__ import annotations

import pytest

from chainkit.contracts import artifacts
from chainkit.contracts.artifacts import Release
from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run

NAME = "GroupMessages"
"""The log that is upgraded."""


def upgrade_command(chain: LocalChain, *arguments: object) -> Outcome:
    place = ("--rpc", chain.url, "--deployment", chain.record_path)
    return run("contracts", "upgrade", NAME, *arguments, *place)


def traces(chain: LocalChain) -> tuple[object, ...]:
    """The head, nonces and record, which sending anything would change."""
    accounts = [dev_address(number) for number in range(10)]
    nonces = [chain.anvil.request("eth_getTransactionCount", item, "pending") for item in accounts]
    return (chain.head(), *nonces, chain.record_path.read_text())


def note_release(monkeypatch: pytest.MonkeyPatch, release: Release) -> Release:
    """Let the package know one release before its own."""
    monkeypatch.setattr(artifacts, "_past_releases", lambda name: (release,) * (name == NAME))
    return release
