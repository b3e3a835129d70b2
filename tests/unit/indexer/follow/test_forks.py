from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import select

from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle
from support.chains.fake_chain import FakeChain, Post, malformed, update
from support.indexer import fake_node
from support.seeds import IS_SOAK

KEY = SigningKey(bytes([7]) * 32)
LOWEST_FORK = 4
PAYLOADS = (schema.envelope_logs, schema.quarantine)


def index_until_idle(store: Store, chain: FakeChain, page_blocks: int) -> None:
    while not isinstance(_step(store, chain, page_blocks), Idle):
        pass


def _step(store: Store, chain: FakeChain, page_blocks: int) -> object:
    settings = IndexerSettings(chain.deployment, page_blocks)
    return step(chain.endpoint, store, settings, PageReader(settings, Signer(KEY)))


def open_store(chain: FakeChain, folder: Path, name: str) -> Store:
    return fake_node.open_store(folder / name, Identity.of(chain.deployment, KEY.public_key))


def rows(store: Store, table: Any) -> list[dict[str, Any]]:
    with store.reading() as connection:
        query = select(table).order_by(*table.primary_key)
        return [dict(row) for row in connection.execute(query).mappings()]


class Forks(RuleBasedStateMachine):
    """A chain forks as it likes while a node follows it in pages of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.chain = FakeChain()
        self.store = open_store(self.chain, Path(self.folder.name), "node.db")
        self.names = count()

    def _posts(self, kinds: list[int]) -> list[Post]:
        make = (Post, update, malformed)
        return [make[kind](f"post {next(self.names)}") for kind in kinds]

    @rule(blocks=st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=4))
    def mine(self, blocks: list[list[int]]) -> None:
        self.chain.mine(*[self._posts(kinds) for kinds in blocks])

    @precondition(lambda self: self.chain.head.number > LOWEST_FORK)
    @rule(data=st.data(), new=st.lists(st.integers(0, 2), max_size=2))
    def fork(self, data: st.DataObject, new: list[int]) -> None:
        depth = data.draw(st.integers(1, self.chain.head.number - LOWEST_FORK))
        taken_back = [post for block in self.chain.blocks[-depth:] for post in block.posts]
        remined = data.draw(st.permutations([*taken_back, *self._posts(new)]))
        dropped = data.draw(st.integers(0, len(remined)))
        length = data.draw(st.integers(1, depth + 2))
        blocks: list[list[Post]] = [[] for _ in range(length)]
        for index, post in enumerate(remined[dropped:]):
            blocks[index % length].append(post)
        self.chain.fork(depth, *blocks)

    @precondition(lambda self: self.chain.head.number > LOWEST_FORK)
    @rule()
    def shorten(self) -> None:
        self.chain.rewind(1)
        self.chain.salt += 1

    @rule(page_blocks=st.integers(1, 7), steps=st.integers(1, 4))
    def follow(self, page_blocks: int, steps: int) -> None:
        for _ in range(steps):
            _step(self.store, self.chain, page_blocks)

    @invariant()
    def sequence_ids_have_no_gap(self) -> None:
        ids = [row["sequence_id"] for table in PAYLOADS for row in rows(self.store, table)]
        position = self.store.position()
        last = position.sequence_ids[0] if position else 0
        assert sorted(ids) == list(range(1, last + 1))

    def teardown(self) -> None:
        # A chain that was only shortened contradicts nothing yet.
        self.chain.mine([], [])
        while self.chain.head.number < 60:
            self.chain.mine([])
        index_until_idle(self.store, self.chain, 3)
        clean = open_store(self.chain, Path(self.folder.name), "clean.db")
        index_until_idle(clean, self.chain, 200)
        for table in (schema.envelopes, *PAYLOADS, schema.cursor):
            assert rows(self.store, table) == rows(clean, table)
        self._check_journal()
        clean.close()
        self.store.close()
        self.folder.cleanup()

    def _check_journal(self) -> None:
        on_chain = {
            row["transaction_hash"]: row["sequence_id"]
            for table in PAYLOADS
            for row in rows(self.store, table)
        }
        newest: dict[bytes, dict[str, Any]] = {}
        for entry in rows(self.store, schema.journal):
            newest[entry["transaction_hash"]] = entry
        for transaction, entry in newest.items():
            if transaction not in on_chain:
                assert entry["outcome"] == "dropped"
            elif on_chain[transaction] == entry["sequence_id"]:
                assert (entry["outcome"], entry["new_sequence_id"]) == ("kept", None)
            else:
                assert entry["outcome"] == "moved"
                assert entry["new_sequence_id"] == on_chain[transaction]


TestForks = Forks.TestCase
TestForks.settings = settings(
    max_examples=400 if IS_SOAK else 12,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
