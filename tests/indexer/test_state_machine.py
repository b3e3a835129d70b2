from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from chainkit.errors import ReorgTooDeep
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle
from support.chains.model_chain import cut_connection
from support.chains.model_databases import Databases, Killed, killed_at, tables_of
from support.chains.model_machine import LOWEST_HEAD, Fork, ModelMachine, blocks_of_shapes, forks
from support.chains.model_node import KEY
from support.seeds import IS_SOAK

EXAMPLES = {"sqlite": 3000, "postgres": 1500} if IS_SOAK else {"sqlite": 15, "postgres": 8}
STEPS = 60 if IS_SOAK else 40
LONGEST_SECONDS = 6 * 3600 if IS_SOAK else 900
"""A failure is shrunk for up to five minutes before it is shown."""


steps = st.integers(0, 4)
requests_ = st.integers(0, 6)
calls = st.frozensets(st.integers(1, 9), min_size=1, max_size=2)
methods = st.frozensets(
    st.sampled_from(("eth_getLogs", "eth_getBlockByNumber", "eth_call")), min_size=1, max_size=2
)


class Following(ModelMachine):
    """A node follows, over endpoints that fail and disagree, and is killed now and then."""

    @rule(blocks=blocks_of_shapes, empty=st.sampled_from((0, 0, 1, 12)), steps=steps)
    def follow_what_is_mined(self, blocks: list[list[str]], empty: int, steps: int) -> None:
        self.mine([*blocks, *[[]] * empty])
        self._follow(steps)

    @rule(fork=forks, steps=steps)
    def follow_a_fork(self, fork: Fork, steps: int) -> None:
        self.fork(fork)
        self._follow(steps)

    @rule(depth=st.integers(1, 3), steps=steps)
    def follow_a_chain_that_was_shortened(self, depth: int, steps: int) -> None:
        self.shorten(depth)
        self._follow(steps)

    @rule(number=st.integers(0, 20), steps=steps)
    def follow_a_branch_that_was_left(self, number: int, steps: int) -> None:
        head = self.left[-1 - number % len(self.left)]
        self.left.append(self.chain.head)
        self.chain.adopt(head)
        self._follow(steps)

    @rule(distance=st.integers(0, 6))
    def see_the_chain_finalize(self, distance: int) -> None:
        self.chain.finalized = max(self.chain.finalized, self.chain.head.number - distance)
        self._follow(1)

    def _follow(self, steps: int) -> None:
        for _ in range(steps):
            self._follow_exactly()

    @rule(number=requests_, fork=forks)
    def follow_while_the_chain_forks(self, number: int, fork: Fork) -> None:
        self._follow_disturbed({number: lambda: self.fork(fork)})

    @rule(numbers=st.tuples(requests_, requests_), forks=st.tuples(forks, forks))
    def follow_while_the_chain_forks_twice(
        self, numbers: tuple[int, int], forks: tuple[Fork, Fork]
    ) -> None:
        acts = [lambda fork=fork: self.fork(fork) for fork in forks]
        self._follow_disturbed(dict(zip(numbers, acts, strict=True)))

    @rule(number=requests_, blocks=blocks_of_shapes)
    def follow_while_the_chain_grows(self, number: int, blocks: list[list[str]]) -> None:
        self._follow_disturbed({number: lambda: self.mine(blocks)})

    @rule(number=requests_, depth=st.integers(1, 3))
    def follow_while_the_chain_shrinks(self, number: int, depth: int) -> None:
        self._follow_disturbed({number: lambda: self.shorten(depth)})

    @rule(number=requests_)
    def follow_over_a_cut_connection(self, number: int) -> None:
        self._follow_disturbed({number: cut_connection})

    @rule(numbers=st.frozensets(requests_, min_size=1), lag=st.integers(1, 4))
    def follow_with_a_lagging_replica(self, numbers: frozenset[int], lag: int) -> None:
        self.chain.replica = self.chain.blocks[: max(LOWEST_HEAD, len(self.chain.blocks) - lag)]
        self._follow_disturbed({}, numbers)

    @rule(numbers=st.frozensets(requests_, min_size=1), fork=forks)
    def follow_with_a_replica_on_another_branch(self, numbers: frozenset[int], fork: Fork) -> None:
        self._stand_elsewhere(fork)
        self._follow_disturbed({}, numbers)

    @rule(numbers=calls, fork=forks)
    def follow_with_another_branch_within_a_batch(
        self, numbers: frozenset[int], fork: Fork
    ) -> None:
        self._stand_elsewhere(fork)
        self.chain.replica_calls = numbers
        self._follow_disturbed({})

    @rule(methods=methods, fork=forks)
    def follow_with_another_branch_for_some_calls(
        self, methods: frozenset[str], fork: Fork
    ) -> None:
        self._stand_elsewhere(fork)
        self.chain.replica_methods = methods
        self._follow_disturbed({})

    def _stand_elsewhere(self, fork: Fork) -> None:
        """Let the replica see a fork of its own, which the chain never had."""
        self._have_something_to_follow()
        head = self.chain.head
        self.fork(fork)
        self.chain.replica = self.chain.blocks
        self.chain.adopt(head)

    @rule(methods=methods, lag=st.integers(1, 4))
    def follow_with_a_lagging_replica_for_some_calls(
        self, methods: frozenset[str], lag: int
    ) -> None:
        self.chain.replica_methods = methods
        self.follow_with_a_lagging_replica(frozenset(), lag)

    @rule(steps=steps)
    def restart(self, steps: int) -> None:
        self.store.close()
        self._open()
        self._follow(steps)

    @rule(statement=st.integers(0, 14))
    def be_killed(self, statement: int) -> None:
        with killed_at(statement):
            try:
                self._follow_exactly()
            except Killed:
                self.restart(0)
                self._take_over_from_the_dead()
        self._check_tables()

    @precondition(lambda self: self._expected() is ReorgTooDeep)
    @rule()
    def take_back_a_fork_below_the_final_block(self) -> None:
        self._follow_exactly()
        self.chain.adopt(self.node.cursor)
        self.mine([[], []])

    # ------------------------------------------------------------------ at rest

    def teardown(self) -> None:
        if hasattr(self, "store"):
            try:
                # An example that has failed would only fail again.
                if self.is_sound:
                    self._come_to_rest()
            finally:
                self.store.close()

    def _come_to_rest(self) -> None:
        is_below_all = self.node.cursor and not self.node.ancestor(tuple(self.chain.blocks))
        if is_below_all and not self.node.may_start_over:
            self.chain.adopt(self.node.cursor)
        # A chain that was only shortened contradicts nothing yet, and what is final is not new.
        height = max(self.node.height, self.chain.head.number)
        if self.settings.serves_final_only:
            height += self.settings.finality.blocks or 0
        self.chain.mine(*[[]] * (height + 2 - self.chain.head.number))
        self.chain.finalized = height
        self.ahead, self.reader = [], PageReader(self.settings, Signer(KEY))
        while self._expected() is not Idle:
            self._follow_exactly()
        self._compare_with_clean_index()

    def _compare_with_clean_index(self) -> None:
        clean = Store.open(self.clean_databases.empty(self.identity), self.identity)
        settings = IndexerSettings(
            self.chain.deployment,
            finality=self.settings.finality,
            serves_final_only=self.settings.serves_final_only,
        )
        self.chain.calm()
        reader = PageReader(settings, Signer(KEY))
        while not isinstance(step(self.chain.endpoint, clean, settings, reader), Idle):
            pass
        stored, expected = tables_of(self.store), tables_of(clean)
        clean.close()
        for name in ("envelopes", "quarantine"):
            assert stored[name] == expected[name], name
        assert [row[:4] for row in stored["cursor"]] == [row[:4] for row in expected["cursor"]]


def _run(databases: Databases, clean: Databases, examples: int) -> None:
    profile = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: Following(databases, clean), settings=profile)


@pytest.mark.timeout(LONGEST_SECONDS)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_follow__chain_and_endpoints_do_what_they_like__tables_are_the_models(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    new_url = request.getfixturevalue("postgres").new_database if kind == "postgres" else None
    (tmp_path / "clean").mkdir()
    _run(Databases(tmp_path, new_url), Databases(tmp_path / "clean", None), EXAMPLES[kind])
