"""A chain with arbitrary changes, and a node whose every step is compared with a model of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

from chainkit.errors import ChainkitError, ReorgTooDeep, RetryableChainError
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow import prefetch
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Advanced, Idle, RolledBack, StepResult
from support.chains.fake_chain import FIRST_BLOCK, Block
from support.chains.model_chain import KINDS, ModelChain, Payload, Transaction
from support.chains.model_databases import TABLES, Databases, tables_of
from support.chains.model_node import KEY, NOTHING_FINAL, ModelNode, Row

LOWEST_HEAD = FIRST_BLOCK + 1
LOWEST_ANCESTOR = FIRST_BLOCK - 2
"""One block below all that a node ever follows."""

ORIGINATORS = (dict.fromkeys(KINDS, 0), dict(zip(KINDS, (0, 1), strict=True)))
"""One sequence for both contracts, or one for each."""

FINALITIES = (
    FinalityPolicy(blocks=256),
    FinalityPolicy(blocks=6),
    FinalityPolicy(blocks=2),
    FinalityPolicy(blocks=None, tag="finalized"),
)
SHAPES = ("m", "u", "x", "mm", "mu", "mmm", "xmx", "umu")
"""Payloads of a transaction: messages, identity updates, malformed bytes; a letter that comes again
is the same payload again."""

shapes = st.lists(st.sampled_from(SHAPES), max_size=3)
blocks_of_shapes = st.lists(shapes, min_size=1, max_size=4)


@dataclass(frozen=True)
class Fork:
    """A fork of the chain: the dropped payloads are mined again in another order, or not."""

    depth: int
    rotated: int
    """How far the order of the transactions is turned."""
    dropped: int
    growth: int
    """How much longer than the old branch the new one is."""
    is_altered: bool
    """Transactions that posted several payloads now post all but the first."""
    new: list[str]
    is_new_first: bool


forks = st.builds(
    Fork,
    depth=st.integers(1, 4) | st.integers(5, 16),
    rotated=st.sampled_from((0, 0, 1, 2)),
    dropped=st.sampled_from((0, 0, 1, 2)),
    growth=st.sampled_from((0, 1, 3, -1, -3, -10)),
    is_altered=st.booleans(),
    new=st.lists(st.sampled_from(("m", "x", "mm")), max_size=2),
    is_new_first=st.booleans(),
)


class ModelMachine(RuleBasedStateMachine):
    """A chain and its endpoints change arbitrarily, while a node follows step by step."""

    def __init__(self, databases: Databases, clean: Databases) -> None:
        super().__init__()
        self.databases, self.clean_databases = databases, clean
        self.names = count()
        self.final_rows: dict[tuple[Any, ...], Row] = {}
        self.is_sound = True

    @initialize(
        originators=st.sampled_from(ORIGINATORS),
        finality=st.sampled_from(FINALITIES),
        page_blocks=st.sampled_from((200, 3, 7, 1)),
        prefetches=st.booleans(),
        recent_blocks=st.sampled_from((0, 3, 512)),
        serves_final_only=st.sampled_from((False, False, False, True)),
    )
    def start(
        self,
        originators: dict[Any, int],
        finality: FinalityPolicy,
        page_blocks: int,
        prefetches: bool,
        recent_blocks: int,
        serves_final_only: bool,
    ) -> None:
        self.chain = ModelChain(originators)
        self.left = [self.chain.head]
        # So few blocks as are mined here never get as old as the longest of the policies.
        serves_final_only = serves_final_only and finality != FINALITIES[0]
        self.settings = IndexerSettings(
            self.chain.deployment, page_blocks, finality, serves_final_only
        )
        self.reading = (prefetches, recent_blocks)
        self.recent_blocks = recent_blocks
        self.identity = Identity.of(self.chain.deployment, KEY.public_key)
        self.location = self.databases.empty(self.identity)
        self.node = ModelNode(self.chain)
        self._open()

    def _open(self) -> None:
        self.store = Store.open(self.location, self.identity)
        self.reader = PageReader(self.settings, Signer(KEY), *self.reading)
        self.ahead: list[tuple[Block, ...]] = []
        # Since the step that took each of the last pages.
        self.shown_since = deque[list[tuple[Block, ...]]]([[]], maxlen=prefetch._PAGES)

    # ------------------------------------------------------------------ what the chain does

    def mine(self, blocks: list[list[str]]) -> None:
        self.chain.mine(*[self._transactions(each) for each in blocks])

    def fork(self, fork: Fork) -> None:
        self.left.append(self.chain.head)
        depth = min(fork.depth, self.chain.head.number - LOWEST_ANCESTOR)
        if depth <= 0:
            return
        taken_back = [each for block in self.chain.blocks[-depth:] for each in block.posts]
        if fork.is_altered:
            taken_back = [
                Transaction(each.name, each.payloads[1:] or each.payloads) for each in taken_back
            ]
        pivot = fork.rotated % max(1, len(taken_back))
        mined = [*taken_back[pivot:], *taken_back[:pivot]][fork.dropped :]
        new = self._transactions(fork.new)
        mined = new + mined if fork.is_new_first else mined + new
        branch: list[list[Transaction]] = [[] for _ in range(max(1, depth + fork.growth))]
        for index, transaction in enumerate(mined):
            branch[index % len(branch)].append(transaction)
        # Below the first block there are no contracts yet.
        before = max(0, FIRST_BLOCK - 1 - self.chain.head.number + depth)
        self.chain.fork(depth, *[[]] * before, *branch)

    def shorten(self, depth: int) -> None:
        self.left.append(self.chain.head)
        self.chain.rewind(max(0, min(depth, self.chain.head.number - LOWEST_HEAD)))
        self.chain.salt += 1

    def _transactions(self, wanted: list[str]) -> list[Transaction]:
        return [self._transaction(f"{next(self.names)}", shape) for shape in wanted]

    def _transaction(self, name: str, shape: str) -> Transaction:
        kinds = {"m": KINDS[0], "u": KINDS[1], "x": KINDS[len(name) % 2]}
        return Transaction(
            name,
            tuple(
                Payload(
                    f"{name} {letter}",
                    kinds[letter],
                    self.chain.originator_of[kinds[letter]],
                    is_valid=letter != "x",
                )
                for letter in shape
            ),
        )

    # ------------------------------------------------------------------ one step, and the model

    def _follow_exactly(self) -> None:
        self.chain.calm()
        expected = self._expected()
        outcome = self._step()
        if self._is_from_ahead(outcome):
            self._take_over(outcome)
        else:
            assert isinstance(outcome, expected), (outcome, expected)
            if isinstance(outcome, RolledBack):
                ancestor = self.node.ancestor(tuple(self.chain.blocks))
                below_all = self.node.known[0].parent_hash
                assert outcome.cursor.hash == (ancestor.hash if ancestor else below_all)
            if isinstance(outcome, Advanced):
                assert outcome.cursor.hash == self.chain.blocks[outcome.cursor.number].hash
                is_final_only = self.settings.serves_final_only
                end = self.chain.head.number if is_final_only else outcome.cursor.number
                assert outcome.final_block == self._final(end)
            self._take_over(outcome)
        self._check_tables()

    def _follow_disturbed(
        self,
        disturbances: dict[int, Callable[[], None]],
        asks_replica: frozenset[int] = frozenset(),
    ) -> None:
        self._have_something_to_follow()
        self.chain.disturbances, self.chain.asks_replica = disturbances, asks_replica
        # A disturbed look-ahead leaves its error to the next step, which may then fail.
        outcome = self._step()
        views = self.chain.shown + self.ahead_before
        is_below_all = any(self.node.ancestor(view) is None for view in views)
        on_a_view = {block.hash for view in views for block in view}
        if isinstance(outcome, ReorgTooDeep):
            assert is_below_all and not self.node.may_start_over
        if isinstance(outcome, Advanced | RolledBack):
            assert outcome.cursor.hash in on_a_view or (is_below_all and self.node.may_start_over)
        self._take_over(outcome)
        self.chain.calm()
        self._check_tables()

    def _have_something_to_follow(self) -> None:
        """Nothing can go wrong where there is nothing to do."""
        if self._expected() is ReorgTooDeep:
            self.chain.adopt(self.node.cursor)
        while self._expected() is Idle:
            self.mine([["m"], [], [], ["mu", "x"], []])
            if self.settings.serves_final_only:
                self.chain.finalized = self.chain.head.number - 1

    def _step(self) -> StepResult | ChainkitError:
        self.is_sound = False
        self.ahead_before, self.ahead = self.ahead, []
        try:
            outcome = step(self.chain.endpoint, self.store, self.settings, self.reader)
        except (RetryableChainError, ReorgTooDeep) as error:
            outcome = error
        ahead = self.reader._prefetcher
        under_way = [] if ahead is None else [page for page, _ in ahead._pages]
        for page in under_way:
            # A page asked for ahead is awaited now, so that an example runs the same each time.
            page.exception()
        if isinstance(outcome, Advanced):
            self.shown_since.append([])
        self.shown_since[-1] += self.chain.shown
        if under_way:
            # A page was asked for some pages ago, and a step may not come to reading.
            self.ahead = [view for views in self.shown_since for view in views]
        return outcome

    def _is_from_ahead(self, outcome: StepResult | ChainkitError) -> bool:
        """Return whether a step returned a page fetched before it, maybe of another branch.

        Near the head this must not happen: there a page is fetched again if the chain has left it.
        """
        if isinstance(outcome, Advanced):
            if outcome.cursor.number > self.chain.head.number - self.recent_blocks:
                return False
            on_chain = {block.hash for block in self.chain.blocks}
            ahead = {block.hash for view in self.ahead_before for block in view}
            return outcome.cursor.hash not in on_chain and outcome.cursor.hash in ahead
        return isinstance(outcome, RetryableChainError) and bool(self.ahead_before)

    def _expected(self) -> type[StepResult | ChainkitError]:
        """The result or error that a step must return, as long as the chain does not change."""
        node, blocks = self.node, self.chain.blocks
        head, height = blocks[-1], node.height
        if node.cursor is None:
            return Advanced if self._top() > height else Idle
        if head.number < height:
            same_height = [block for block in node.known if block.number == head.number]
            if not same_height or same_height[0].hash == head.hash:
                return Idle
        elif head.hash == node.cursor.hash or (head.number > height >= self._top()):
            return Idle
        elif blocks[height].hash == node.cursor.hash:
            return Advanced
        is_too_deep = node.ancestor(tuple(blocks)) is None and not node.may_start_over
        return ReorgTooDeep if is_too_deep else RolledBack

    def _top(self) -> int:
        head = self.chain.head.number
        return self._final(head) if self.settings.serves_final_only else head

    def _final(self, height: int) -> int:
        """The highest final block of a chain that ends at a height."""
        if self.settings.finality.tag:
            is_there = self.chain.finalized <= self.chain.head.number
            found = min(self.chain.finalized, height) if is_there else NOTHING_FINAL
        else:
            found = height - self.settings.finality.blocks
        return max(found, self.node.final)

    def _highest_final(self, to: Block) -> int:
        """The highest block that may be final after a step in which anything happened."""
        if self.settings.finality.tag:
            return max(min(self.chain.finalized, to.number), self.node.final)
        if self.settings.serves_final_only:
            return to.number
        return max(to.number - self.settings.finality.blocks, self.node.final)

    def _take_over(self, outcome: StepResult | ChainkitError) -> None:
        """Apply a node's reported result to the model, if the model allows it."""
        node = self.node
        if isinstance(outcome, Advanced):
            to = self.chain.every[outcome.cursor.hash]
            branch = self.chain.branch(to)
            assert 0 < to.number - node.height <= self.settings.page_blocks
            assert node.cursor is None or branch[node.height].hash == node.cursor.hash
            final = min(outcome.final_block, to.number)
            assert node.final <= final <= self._highest_final(to)
            assert outcome.from_block == node.height + 1
            emissions = [
                each for b in branch[node.height + 1 :] for each in self.chain.emissions(b)
            ]
            valid = sum(each.payload.is_valid for each in emissions)
            assert (outcome.envelopes, outcome.quarantined) == (valid, len(emissions) - valid)
            node.advance(to, final)
        elif isinstance(outcome, RolledBack):
            ancestor = self.chain.every[outcome.cursor.hash]
            assert outcome.depth == node.height - ancestor.number > 0
            if ancestor.hash == node.known[0].parent_hash:
                assert outcome.retracted == node.start_over()
            else:
                assert ancestor.hash in {block.hash for block in node.known}
                assert outcome.retracted == node.roll_back(ancestor)
            assert outcome.reorg_id == len(node.reorgs)

    def _take_over_from_the_dead(self) -> None:
        """Apply the commit of a killed process, which could not report its result."""
        node, stored = self.node, tables_of(self.store)
        if node.cursor and not stored["cursor"]:
            node.start_over()
        for _, _, block_hash, _, final in stored["cursor"]:
            if node.cursor is None or block_hash != node.cursor.hash:
                block = self.chain.every[block_hash]
                if len(stored["reorgs"]) > len(node.reorgs):
                    node.roll_back(block)
                else:
                    node.advance(block, final)

    def _check_tables(self) -> None:
        stored = tables_of(self.store)
        expected = self.node.tables()
        for name in TABLES:
            assert stored[name] == expected[name], name
        served = {row[:2]: row for row in stored["envelopes"]}
        placed = [row for name in ("envelope_logs", "quarantine") for row in stored[name]]
        now = {row[:2]: (*row, *served.get(row[:2], ())) for row in placed}
        for key, row in self.final_rows.items():
            assert now[key] == row, f"envelope {key} was final"
        self.final_rows = {key: row for key, row in now.items() if row[2] <= self.node.final}
        self.is_sound = True
