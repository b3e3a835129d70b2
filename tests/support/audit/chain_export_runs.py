"""Exports of an answered chain in ranges of a few blocks: run, killed, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.exports import files_of
from chainkit_jobs.chain_export.export import Exported, export_chain
from support.chains.answered_chain import RECORD, AnsweredChain
from support.exports import read_manifest

POSTS = {3: 1, 4: 2, 9: 3, 17: 4, 18: 5}
HEAD = 19


def chain_of(**changes: Any) -> AnsweredChain:
    return AnsweredChain(**{"posts": POSTS, "head": HEAD} | changes)


def export(
    chain: AnsweredChain,
    out: Path,
    end: int = HEAD,
    first_block: int = 1,
    range_blocks: int | None = 5,
    record: DeploymentRecord = RECORD,
    **options: Any,
) -> Exported:
    last = chain.reference(end)
    return export_chain(chain.endpoint(), record, first_block, last, out, range_blocks, **options)


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    manifest = read_manifest(folder, "chain")
    return [
        row
        for name in files_of(manifest, table)
        for row in pq.read_table(folder / name).to_pylist()
    ]


class KilledAfter:
    """Dies as a process would, once so many blocks were fetched."""

    def __init__(self, blocks: int) -> None:
        self.left = blocks

    def __call__(self, more: int, _: int) -> None:
        self.left -= more
        if self.left < 0:
            raise KeyboardInterrupt
