"""The followed chain compared with that of another host's endpoint: told, and never decided."""

from __future__ import annotations

import pytest

from chainkit.chain import Endpoint, EndpointPool, RetryPolicy
from chainkit.types import BlockReference
from chainkit_indexer.monitoring.other_chains import LOOKS_UNTIL_SAID, PAUSE_SECONDS, OtherChains
from support.chains.fake_chain import FakeChain, Post


class Trial:
    """Two endpoints of different hosts, each before a chain of its own."""

    def __init__(self) -> None:
        self.chains = FakeChain(), FakeChain()
        for chain in self.chains:
            chain.mine([Post("a")], [Post("b")])
        self.first, self.second = (
            Endpoint(chain, f"http://{name}", RetryPolicy(attempts=1))
            for chain, name in zip(self.chains, ("first", "second"), strict=True)
        )
        self.now = 0.0
        self.jobs = 0
        pool = EndpointPool([self.first, self.second], clock=lambda: self.now)
        self.others = OtherChains(pool, lambda: self.now, self.at_once)

    def at_once(self, job: object) -> None:
        self.jobs += 1
        job()  # type: ignore[operator]

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            head = self.chains[0].head
            self.others.look(self.first, BlockReference(head.number, head.hash))
            self.now += PAUSE_SECONDS

    def fork(self) -> None:
        self.chains[1].fork(1, [Post("c")])


@pytest.fixture
def trial() -> Trial:
    return Trial()


def test_look__same_chain__says_nothing(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    trial.look(5)

    assert trial.others.differing() == {"http://second": False}
    assert not caplog.messages


def test_look__two_chains__names_both_blocks_and_then_the_end(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    trial.fork()

    trial.look(LOOKS_UNTIL_SAID - 1)
    assert not caplog.messages
    trial.look(5)

    [message] = caplog.messages
    for part in (*(f"0x{chain.head.hash.hex()}" for chain in trial.chains), "first", "second"):
        assert part in message
    assert trial.others.differing() == {"http://second": True}
    trial.chains[1].fork(1, [Post("b")])
    trial.chains[1].blocks[-1] = trial.chains[0].head
    trial.look()
    assert caplog.messages[1:] == ["http://second shows the same chain as http://first again"]
    assert trial.others.differing() == {"http://second": False}


def test_look__reorg_that_passes__says_nothing(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    same = trial.chains[1].head
    for _ in range(4):
        trial.fork()
        trial.look(LOOKS_UNTIL_SAID - 1)
        trial.chains[1].blocks[-1] = same
        trial.look()

    assert not caplog.messages


def test_look__other_lags_or_does_not_answer__says_nothing(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    trial.chains[1].rewind(1)
    trial.look(5)
    del trial.chains[1].blocks[:]
    trial.look(5)

    assert not caplog.messages
    assert trial.others.differing() == {}


def test_look__not_due_or_one_host__asks_nothing(trial: Trial) -> None:
    for _ in range(9):
        head = trial.chains[0].head
        trial.others.look(trial.first, BlockReference(head.number, head.hash))
    assert trial.jobs == 1

    pool = EndpointPool([trial.first, Endpoint(trial.chains[1], "http://first #2")])
    alone = OtherChains(pool, in_background=trial.at_once)
    alone.look(trial.first, BlockReference(2, bytes(32)))
    assert trial.jobs == 1
