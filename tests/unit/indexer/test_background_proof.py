"""Stored blocks that are proved while the chain is followed: in pieces, and only final ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from chainkit.chain import Endpoint
from chainkit.errors import ChainError, Disproved
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.provenance import read_runs
from chainkit_indexer.types import Provenance
from chainkit_indexer.verification import background as module
from chainkit_indexer.verification.background import BackgroundProver
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, malformed
from support.indexer.fake_node import FakeNode

LAST = FIRST_BLOCK + 7


@dataclass
class Trial:
    """A node whose endpoint had no receipts when it followed, and a clock that a test moves."""

    node: FakeNode
    now: float = 100.0
    reported: list[ChainError] = field(default_factory=list)
    others: tuple[Endpoint, ...] = ()

    def __post_init__(self) -> None:
        settings = IndexerSettings(self.node.chain.deployment, trusts_one_endpoint=True)
        self.prover = BackgroundProver(
            self.node.store,
            settings,
            lambda endpoint: self.others,
            lambda endpoint, error: self.reported.append(error),
            lambda: self.now,
        )

    def prove(self, final_block: int = LAST, pieces: int = 1) -> None:
        for _ in range(pieces):
            self.prover.prove(self.node.chain.endpoint, final_block)
            self.now += 0.5

    @property
    def requests(self) -> int:
        return self.node.chain.endpoint.traffic.requests

    def runs(self) -> list[tuple[int, int, Provenance]]:
        with self.node.store.reading() as connection:
            found = read_runs(connection)
        return [(run.first_block, run.last_block, run.provenance) for run in found]


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    chain = FakeChain()
    chain.mine([Post("a")], [], [Post("b"), malformed("c")], [], [Post("d")], [], [Post("e")], [])
    node = FakeNode(chain, tmp_path / "node.db")
    node.catch_up_without_receipts(page_blocks=2)
    monkeypatch.setattr(module, "PIECE_BLOCKS", 2)
    yield Trial(node)
    node.store.close()


def test_prove__piece_by_piece__raises_all_blocks_and_tells_the_end(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "chainkit")
    before = trial.node.rows(schema.envelopes)

    trial.prove()

    assert trial.runs() == [
        (FIRST_BLOCK, FIRST_BLOCK + 1, Provenance.RECEIPTS),
        (FIRST_BLOCK + 2, LAST, Provenance.ONE_ENDPOINT),
    ]
    assert not caplog.messages
    trial.prove(pieces=3)
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.RECEIPTS)]
    assert caplog.messages == [
        f"stored blocks {FIRST_BLOCK} to {LAST} were compared with the chain and are proved"
    ]
    assert trial.node.rows(schema.envelopes) == before
    assert (trial.prover.differences, trial.reported) == (0, [])


def test_prove__blocks_that_are_not_final__wait_until_they_are(trial: Trial) -> None:
    final = FIRST_BLOCK + 2

    trial.prove(final, pieces=4)

    assert trial.runs() == [
        (FIRST_BLOCK, final, Provenance.RECEIPTS),
        (final + 1, LAST, Provenance.ONE_ENDPOINT),
    ]
    trial.now += 100
    trial.prove(LAST, pieces=4)
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.RECEIPTS)]


def test_prove__slow_piece__rests_nine_times_as_long(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = trial.node.chain._eth_getBlockReceipts

    def slow(block: str) -> Any:
        trial.now += 2
        return answer(block)

    monkeypatch.setattr(trial.node.chain, "_eth_getBlockReceipts", slow)
    trial.prove()
    after_one = trial.runs()

    trial.now += 17
    trial.prove()
    assert trial.runs() == after_one
    trial.now += 1
    trial.prove()
    assert trial.runs() != after_one


def test_prove__row_that_differs__is_told_counted_and_stays_unproved(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    second = schema.envelopes.c.sequence_id == 2
    with trial.node.store.writing() as connection:
        connection.execute(update(schema.envelopes).where(second).values(topic=b"\x00other"))

    trial.prove(pieces=10)

    assert trial.runs() == [
        (FIRST_BLOCK, FIRST_BLOCK + 1, Provenance.RECEIPTS),
        (FIRST_BLOCK + 2, FIRST_BLOCK + 3, Provenance.ONE_ENDPOINT),
        (FIRST_BLOCK + 4, LAST, Provenance.RECEIPTS),
    ]
    assert trial.prover.differences == 1
    [line] = caplog.messages
    assert "stored row differs from the chain: envelope 2 of originator 0: expected topic" in line


def test_prove__still_no_receipts__the_trusted_endpoint_is_asked_once_an_hour(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    trial.node.chain.offers_receipts = False
    trial.prove()
    asked = trial.requests

    for _ in range(30):
        trial.now += 100
        trial.prove()

    assert trial.requests == asked
    trial.now += 1000
    trial.prove()
    assert trial.requests > asked
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.ONE_ENDPOINT)]
    assert (trial.reported, caplog.messages) == ([], [])


def test_prove__endpoint_that_contradicts_itself__is_reported_each_time_and_told_once(
    trial: Trial, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = trial.node.chain._eth_getBlockReceipts

    def altered(block: str) -> Any:
        return [each | {"cumulativeGasUsed": "0x1"} for each in answer(block)]

    monkeypatch.setattr(trial.node.chain, "_eth_getBlockReceipts", altered)

    trial.prove()

    assert [type(error) for error in trial.reported] == [Disproved]
    trial.now += 100
    trial.prove()
    assert len(trial.reported) == 2
    [line] = caplog.messages
    assert line.startswith("stored blocks are not proved: ")
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.ONE_ENDPOINT)]


def test_prove__endpoint_that_forgot_old_blocks__is_told_once_and_may_still_be_followed(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    def forgetful(method: str, params: list[Any], result: Any) -> Any:
        is_old = method == "eth_getBlockByNumber" and params[0] not in ("latest", hex(LAST))
        return None if is_old else result

    trial.node.chain.tamper = forgetful

    for _ in range(5):
        trial.prove()
        trial.now += 400

    assert trial.reported == []
    [line] = caplog.messages
    assert line.startswith("stored blocks are not proved: ")
    trial.node.chain.tamper = lambda method, params, result: result
    trial.prove(pieces=4)
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.RECEIPTS)]


def test_prove__more_differences_than_lines__are_counted_all_the_same(
    trial: Trial, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_LINES", 0)
    with trial.node.store.writing() as connection:
        connection.execute(update(schema.envelopes).values(topic=b"\x00other"))

    trial.prove(pieces=4)

    assert (trial.prover.differences, caplog.messages) == (4, [])


def test_prove__second_endpoint_and_no_more__asks_again_only_after_an_hour(trial: Trial) -> None:
    trial.node.chain.offers_receipts = False
    trial.others = (trial.node.chain.endpoint,)
    trial.prove(pieces=5)
    assert trial.runs() == [(FIRST_BLOCK, LAST, Provenance.SECOND_ENDPOINT)]

    # A new start, which finds nothing that is stronger.
    again = Trial(trial.node, others=trial.others)
    before = again.requests
    again.prove()
    asked = again.requests
    assert asked > before
    for _ in range(30):
        again.now += 100
        again.prove()
    assert again.requests == asked


def test_runs__proved_after_a_restart__go_on_where_they_were(trial: Trial) -> None:
    trial.prove(pieces=2)
    again = Trial(trial.node)

    again.prove(pieces=2)

    assert again.runs() == [(FIRST_BLOCK, LAST, Provenance.RECEIPTS)]
