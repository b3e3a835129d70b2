"""The common part of Hypothesis' machines for the contracts: blocks, reorgs, and the comparison.

A machine keeps the model's state before each block, so it can follow the chain back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain as chained
from itertools import cycle
from typing import Any, Protocol

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.chains.mined import MinedChain, Outcome, raw_log
from support.solidity import Event, Question, Refused, StorageQuestion, Transaction

ACTORS = 5
"""Accounts 1 to 5 of the chain act; account 0 only deploys."""

# Each step talks to anvil, which is slow beside what Hypothesis expects of a test.
_SLOW = [HealthCheck.too_slow]


class Model(Protocol):
    def apply(self, transaction: Transaction) -> list[Event]:
        """Change as the contracts do and return the events, or raise Refused."""

    def questions(self) -> list[Question | StorageQuestion]:
        """Everything that the contracts can be asked, with the answers."""


Action = Callable[[Model], Transaction]
"""A transaction that depends on the state before it, such as a payload of the greatest size."""


@dataclass(frozen=True)
class MinedBlock:
    before: Model
    transactions: tuple[Transaction, ...]
    hashes: tuple[str, ...]
    events: tuple[Event, ...]


class ChainMachine(RuleBasedStateMachine):
    """Rules mine actions; after each action the chain must equal the model."""

    def __init__(self, chain: MinedChain, model: Model) -> None:
        super().__init__()
        self.chain = chain
        self.model = model
        self.blocks: list[MinedBlock] = []
        # A reorg of all blocks needs the state below them, which anvil has of recent blocks only.
        chain.mine_nothing()
        self.base = chain.snapshot()
        self.base_height = chain.height()
        self.snapshots: list[tuple[str, int]] = []

    def teardown(self) -> None:
        self.chain.forget_pending()
        self.chain.revert(self.base)

    def mine(self, *actions: Action) -> None:
        """Mine one block with these actions in this order."""
        transactions = []
        trial = deepcopy(self.model)
        for action in actions:
            transactions.append(action(trial))
            trial, _ = _applied(trial, transactions[-1])
        self._follow(transactions, self.chain.mine(transactions))

    @precondition(lambda self: self.blocks)
    @rule(
        depth=st.integers(1, 4),
        kept=st.frozensets(st.integers(1, ACTORS)),
        offsets=st.lists(st.integers(0, 3), min_size=1, max_size=4),
        order=st.permutations(range(1, ACTORS + 1)),
    )
    def reorg(self, depth: int, kept: frozenset[int], offsets: list[int], order: list[int]) -> None:
        """Replace the last blocks: drop what some senders sent, mine the rest in other places."""
        depth = min(depth, len(self.blocks))
        retracted = self.blocks[-depth:]
        del self.blocks[-depth:]
        self.model = retracted[0].before
        # evm_revert finds the block of a snapshot by its hash, and the block is gone.
        self.snapshots = [item for item in self.snapshots if item[1] <= len(self.blocks)]
        senders = {self.chain.accounts[number]: order.index(number) for number in kept}
        branch = _branch(retracted, senders, offsets)
        self.chain.reorg([[sent for _, sent in block] for block in branch])
        for block in branch:
            self._follow([item for item, _ in block], [sent for _, sent in block])

    @rule()
    def take_snapshot(self) -> None:
        self.snapshots.append((self.chain.snapshot(), len(self.blocks)))

    @precondition(lambda self: self.snapshots)
    @rule()
    def revert_to_snapshot(self) -> None:
        snapshot, length = self.snapshots.pop()
        self.chain.revert(snapshot)
        if length < len(self.blocks):
            self.model = self.blocks[length].before
            del self.blocks[length:]

    @invariant()
    def chain_equals_the_model(self) -> None:
        questions = self.model.questions()
        for question, answer in zip(questions, self.chain.answers(questions), strict=True):
            assert answer == question.expected, f"{question}: got 0x{answer.hex()}"
        # anvil refuses a range above the head instead of answering that there is nothing.
        logs = self.chain.logs(self.base_height + 1) if self.blocks else []
        expected = [event.raw() for block in self.blocks for event in block.events]
        assert [raw_log(log) for log in logs] == expected
        self.check_logs(logs)

    def check_logs(self, logs: list[dict[str, Any]]) -> None:
        """Check rules that hold for all logs of this example, whatever the model."""

    def _follow(self, transactions: Sequence[Transaction], hashes: Sequence[str]) -> None:
        before, happened = self.model, []
        outcomes = self.chain.outcomes(self.base_height + len(self.blocks) + 1, hashes)
        for transaction, outcome in zip(transactions, outcomes, strict=True):
            self.model, expected = _applied(self.model, transaction)
            _compare(transaction, outcome, expected)
            happened.extend([] if isinstance(expected, Refused) else expected)
        self.blocks.append(MinedBlock(before, tuple(transactions), tuple(hashes), tuple(happened)))


def run_machine(make: Callable[[], ChainMachine], *, examples: int, steps: int) -> None:
    """Run a machine: the same few examples each time, or as many as FUZZ_EXAMPLES from FUZZ_SEED.

    A failure prints the shortest sequence of rules that shows it.
    """
    fixed = "FUZZ_SEED" not in os.environ
    profile = settings(
        max_examples=examples if fixed else int(os.environ.get("FUZZ_EXAMPLES", "1000")),
        stateful_step_count=steps,
        derandomize=fixed,
        database=None,
        deadline=None,
        suppress_health_check=_SLOW,
    )
    if not fixed:
        number = int(os.environ["FUZZ_SEED"], 0)
        print(f"FUZZ_SEED={number}: {profile.max_examples} examples of {steps} steps")
        make = seed(number)(make)
    run_state_machine_as_test(make, settings=profile)


def _applied(model: Model, transaction: Transaction) -> tuple[Model, list[Event] | Refused]:
    """Return the model after a transaction: a new one, or the same if it was refused."""
    trial = deepcopy(model)
    try:
        return trial, trial.apply(transaction)
    except Refused as refusal:
        return model, refusal


def _compare(transaction: Transaction, outcome: Outcome, expected: list[Event] | Refused) -> None:
    if isinstance(expected, Refused):
        expected_outcome = Outcome(expected.data, ())
    else:
        expected_outcome = Outcome(None, tuple(event.raw() for event in expected))
    assert outcome == expected_outcome, f"{transaction}: expected {expected!r}, got {outcome}"


def _branch(
    retracted: Sequence[MinedBlock], senders: dict[str, int], offsets: Sequence[int]
) -> list[list[tuple[Transaction, str]]]:
    """Spread what the senders sent over as many new blocks; nonces keep each sender's order."""
    branch: list[list[tuple[Transaction, str]]] = [[] for _ in retracted]
    earliest = dict.fromkeys(senders, 0)
    sent = chained.from_iterable(
        zip(block.transactions, block.hashes, strict=True) for block in retracted
    )
    kept = (item for item in sent if item[0].sender in senders)
    for item, drawn in zip(kept, cycle(offsets), strict=False):
        sender = item[0].sender
        earliest[sender] = max(earliest[sender], drawn % len(branch))
        branch[earliest[sender]].append(item)
    for block in branch:
        block.sort(key=lambda item: senders[item[0].sender])
    return branch
