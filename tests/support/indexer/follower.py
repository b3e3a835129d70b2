"""A node in this process: its key, its database, and one step at a time against any endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle, StepResult
from support.chains.chain import LocalChain
from support.indexer.honest_rows import HonestRows, Tables, chain_tables

KEY = SigningKey(b"\x01" * 32)

FINALITY = FinalityPolicy(blocks=12)
RECENT_BLOCKS = 12
"""Few, so that short chains are read by range below them, and by hash above."""

ALL_KNOWN = FinalityPolicy(blocks=10_000)
"""So deep that each block stays in the table ``blocks``."""


class Follower:
    """Use as a context manager; its database stays."""

    def __init__(self, record: DeploymentRecord, location: Path | str, **portions: Any) -> None:
        deployment = FollowedDeployment.of(record)
        self.store = Store.open(str(location), Identity.of(deployment, KEY.public_key))
        self.settings = IndexerSettings(deployment, **{"finality": FINALITY} | portions)
        self.reader = PageReader(self.settings, Signer(KEY), recent_blocks=RECENT_BLOCKS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def step(self, endpoint: Endpoint) -> StepResult:
        return step(endpoint, self.store, self.settings, self.reader)

    def catch_up(self, endpoint: Endpoint) -> None:
        while not isinstance(self.step(endpoint), Idle):
            pass


def clean_run(chain: LocalChain, location: Path) -> Tables:
    """Follow an honest chain from nothing; return the tables that it ends in."""
    with Follower(chain.record, location) as follower:
        follower.catch_up(chain.endpoint)
        return chain_tables(follower.store)


def learn(honest: HonestRows, chain: LocalChain, location: Path) -> None:
    """Let ``honest`` know all rows of a chain."""
    with Follower(chain.record, location, finality=ALL_KNOWN) as follower:
        follower.catch_up(chain.endpoint)
        honest.learn(follower.store)
