"""`chainkit audit export-chain` of a chain with a few payloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from chainkit.exports import files_of
from support.chains.chain import LocalChain
from support.command_line import Outcome, run
from support.exports import read_manifest
from support.payloads import commit, identity_update

WHOLE = frozenset({"eth_getBlockReceipts"})
"""How the receipts of a whole block are asked for."""
GROUP, INBOX = b"\x0a" * 32, b"\x0b" * 32


def publish(chain: LocalChain) -> None:
    for size in (100, 900, 5000):
        chain.publish_message(GROUP, commit(GROUP, size))
    chain.publish_identity_update(INBOX, identity_update(INBOX))
    chain.publish_message(GROUP, b"\xff not an envelope")
    chain.mine(2)


def arguments_of(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> list[str]:
    where = ["--rpc", url or chain.url, "--deployment", str(chain.record_path)]
    return ["audit", "export-chain", *where, "--out", str(out), *options]


def export(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> Outcome:
    return run(*arguments_of(chain, out, *options, url=url))


def exported(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> Any:
    """Export, and return the output of --json."""
    outcome = export(chain, out, "--json", *options, url=url)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.content


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    names = files_of(read_manifest(folder, "chain"), table)
    return [row for name in names for row in pq.read_table(folder / name).to_pylist()]
