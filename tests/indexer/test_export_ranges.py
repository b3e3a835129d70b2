import os
import random
import time
from pathlib import Path

import pyarrow.parquet as pq
from sqlalchemy import func, select

from chainkit.exports import files_of
from chainkit_indexer.export import write_export
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.storage import schema
from localnet import commands
from support.audit.export_folders import contents_of
from support.chains.chain import LocalChain
from support.command_line import run as run_here
from support.exports import read_manifest
from support.indexer.follower import Follower
from support.payloads import commit
from support.seeds import IS_SOAK

from .conftest import GROUP, Node

KILLS = 60 if IS_SOAK else 8
LONGEST_WRITE_SECONDS = 0.15
SHALLOW = FinalityPolicy(blocks=2)


def post(chain: LocalChain, count: int, start: int = 0) -> None:
    for seed in range(start, start + count):
        payload = commit(GROUP, seed=seed) if seed % 4 else b"\xff" + bytes([seed])
        chain.publish_message(GROUP, payload)


def test_export__sqlite_and_postgresql_in_other_steps__are_the_same_bytes_and_hold_all_rows(
    local_chain: LocalChain, tmp_path: Path, database_url: str
) -> None:
    grown, once = tmp_path / "grown", tmp_path / "once"
    with Follower(local_chain.record, database_url) as follower:
        for start in (0, 9, 18):
            post(local_chain, 9, start)
            follower.catch_up(local_chain.endpoint)
            grown_now = write_export(follower.store, grown, range_blocks=4)
        with follower.store.reading() as connection:
            count = select(func.count()).select_from(schema.envelopes)
            stored = connection.scalar(count)
    with Follower(local_chain.record, tmp_path / "other.db", page_blocks=3) as other:
        other.catch_up(local_chain.endpoint)
        write_export(other.store, once, range_blocks=4)

    assert grown_now.kept
    assert contents_of(grown) == contents_of(once)
    manifest = read_manifest(grown, "node")
    tables = [pq.read_table(grown / name) for name in files_of(manifest, "envelopes")]
    assert sum(table.num_rows for table in tables) == stored
    assert any(about.get("finished") for about in manifest.files.values())


def test_export__command_again__says_what_was_kept(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    post(local_chain, 6)
    database, out = tmp_path / "node.db", tmp_path / "export"
    export = ("index", "export", "--database", database, "--out", out, "--range-blocks", 2)
    with Follower(local_chain.record, database, finality=SHALLOW) as follower:
        follower.catch_up(local_chain.endpoint)
        first = run_here(*export)
        post(local_chain, 3, start=6)
        follower.catch_up(local_chain.endpoint)
        second = run_here(*export, "--json").content
        other_ranges = run_here(*export[:-1], 3)

    assert first.code == 0
    assert "0 of finished ranges kept" in first.out
    assert len(second["kept"]) >= 4
    assert second["rows"]["envelopes"] + second["rows"]["quarantine"] == 9
    assert other_ranges.code == 2
    assert "expected --range-blocks 2 as it was made with, got 3" in other_ranges.err


def kill_while_it_writes(words: list[str], out: Path, chance: random.Random) -> None:
    """Start an export, wait until it writes, and kill it some moments later, or let it end."""
    with open(os.devnull, "wb") as log:
        process = commands.start_command(words, os.environ, log)
    while process.poll() is None and not (out / ".partial").exists():
        time.sleep(0.001)
    time.sleep(chance.uniform(0, LONGEST_WRITE_SECONDS))
    process.kill()
    process.wait()


def test_export__killed_at_random_moments__is_always_a_finished_one(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    database, out = tmp_path / "node.db", tmp_path / "export"
    words = ["index", "export", "--database", str(database)]
    words += ["--out", str(out), "--range-blocks", "1"]
    with Follower(local_chain.record, database, finality=SHALLOW) as follower:
        post(local_chain, 4)
        follower.catch_up(local_chain.endpoint)
        write_export(follower.store, out, range_blocks=1)
        for number in range(KILLS):
            post(local_chain, 1, start=4 + number)
            follower.catch_up(local_chain.endpoint)
            kill_while_it_writes(words, out, chance)
            read_manifest(out, "node")
        write_export(follower.store, out, range_blocks=1)
        write_export(follower.store, tmp_path / "clean", range_blocks=1)

    assert contents_of(out) == contents_of(tmp_path / "clean"), f"seed {seed}"
