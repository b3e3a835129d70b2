from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from sqlalchemy import select

from chainkit.contracts.followed import FollowedDeployment
from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle, StepResult
from localnet import commands
from support import payloads
from support.chains.chain import LocalChain
from support.indexer.warm_indexer import WarmIndexer

GROUP = b"\x11" * 32
PASSWORD = "correct horse"


class Node:
    """A node's key, database and command line on a local chain."""

    def __init__(self, chain: LocalChain, folder: Path, number: int = 1) -> None:
        self.chain = chain
        self.key = SigningKey(bytes([number]) * 32)
        self.database = folder / f"node-{number}.db"
        self.keystore = folder / f"node-{number}.json"
        self.password_file = folder / "password.txt"
        self.password_file.write_text(PASSWORD + "\n")
        encrypted = Account.encrypt(bytes([number]) * 32, PASSWORD, iterations=2)
        self.keystore.write_text(json.dumps(encrypted))

    def step(self, page_blocks: int = 200) -> StepResult:
        deployment = FollowedDeployment.of(self.chain.record)
        identity = Identity.of(deployment, self.key.public_key)
        store = Store.open(str(self.database), identity)
        try:
            settings = IndexerSettings(deployment, page_blocks)
            reader = PageReader(settings, Signer(self.key))
            return step(self.chain.endpoint, store, settings, reader)
        finally:
            store.close()

    def catch_up(self, page_blocks: int = 200) -> None:
        while not isinstance(self.step(page_blocks), Idle):
            pass

    def rows(self, table: Any) -> list[dict[str, Any]]:
        store = Store.open_existing(str(self.database))
        with store.reading() as connection:
            query = select(table).order_by(*table.primary_key)
            rows = [dict(row) for row in connection.execute(query).mappings()]
        store.close()
        return rows

    def payload_rows(self) -> list[list[dict[str, Any]]]:
        return [self.rows(schema.chain_envelopes), self.rows(schema.quarantine)]

    def follower_options(self, **changes: object) -> list[str]:
        options: dict[str, object] = {
            "rpc": self.chain.url,
            "deployment": self.chain.record_path,
            "keystore": self.keystore,
            "password_file": self.password_file,
            "database": self.database,
        } | changes
        return [
            word
            for name, value in options.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]

    def start(self, *options: str, **changes: object) -> subprocess.Popen[str]:
        """Start `chainkit index run` as an operator would."""
        reading, writing = os.pipe()
        with open(writing, "wb") as log:
            process = commands.start_command(
                ["index", "run", *self.follower_options(**changes), *options], environment(), log
            )
        process.stderr = open(reading)  # noqa: SIM115
        return process


def publish(chain: LocalChain, count: int, start: int = 0) -> None:
    """Post valid commits, each in a block of its own."""
    for seed in range(start, start + count):
        chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed))


def chainkit(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `chainkit` without the caller's own settings."""
    return commands.run_to_end([commands.CHAINKIT, *arguments], environment())


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("CHAINKIT_")}


@pytest.fixture(scope="module", autouse=True)
def forked(commands_are_warm: None) -> None:
    """All commands are forks."""


@pytest.fixture(scope="module")
def warm_indexer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmIndexer]:
    with WarmIndexer(tmp_path_factory.mktemp("warm") / "stderr") as running:
        yield running


@pytest.fixture
def node(local_chain: LocalChain, tmp_path: Path) -> Node:
    return Node(local_chain, tmp_path)
