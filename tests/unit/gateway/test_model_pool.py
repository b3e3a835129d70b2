"""No payload is on the chain twice for one publish, whatever pool and replicas answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from chainkit.errors import ChainkitError
from chainkit.service.refusals import Refusal
from chainkit_gateway.chain_publisher import ChainPublisher, Mined
from chainkit_gateway.journal import Journal
from chainkit_gateway.payer_account import REPLACE_SECONDS, PayerAccount
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication
from support import publishes
from support.gateway.fake_chain import CHAIN_ID, CONTRACTS, FINAL_BLOCKS
from support.gateway.model_pool import SIGNER, Killed, ModelPool
from support.seeds import parts, seeds, span

SEEDS = seeds(fixed=60, of_day=40, in_soak=10_000)
PUBLICATIONS = [
    route(publishes.commit(), "ann"),
    route(publishes.identity_update(), "ben"),
]
STEPS = 25
CALM_ROUNDS = 3 * FINAL_BLOCKS
EVENTS = {
    *("lost", "refused", "killed before", "killed after", "answer lost", "refused again"),
    *("already known", "nonce too low", "replacement transaction underpriced"),
    *("replaced", "dropped", "displaced"),
}


class World:
    """A gateway that is started again where it was killed, and its chain."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chain = ModelPool(seed)
        self.random = self.chain.random
        self.now_ns = 10**18
        self.start()

    def start(self) -> None:
        self.journal = Journal.open(self.path)
        self.account = PayerAccount(
            self.chain, SIGNER, self.journal, CONTRACTS.values(), now_ns=lambda: self.now_ns
        )
        self.publisher = ChainPublisher(
            self.account, CHAIN_ID, CONTRACTS, seconds=0.5, pause=lambda _: self.pass_time()
        )

    def pass_time(self) -> None:
        self.now_ns += round(REPLACE_SECONDS * 10**9 / 3)
        if self.chain.is_calm or self.random.random() < 0.3:
            self.chain.mine()

    def step(self) -> None:
        match self.random.choice(["publish"] * 5 + ["process"] * 3 + ["mine"] * 3 + ["bad"]):
            case "publish":
                self.publish(self.random.choice(PUBLICATIONS))
            case "process":
                self.attempt(self.account.process_pending)
            case "mine":
                self.chain.mine()
            case "bad":
                self.random.choice([self.chain.reorg, self.chain.drop, self.chain.displace])()
        self.pass_time()
        self.check()

    def calm_publish(self, publication: Publication) -> Mined | None:
        """Publish, and look after what waits, as the gateway does every few seconds."""
        self.pass_time()
        self.attempt(self.account.process_pending)
        return self.publish(publication)

    def publish(self, publication: Publication) -> Mined | None:
        found: list[Mined] = []
        self.attempt(lambda: found.append(self.publisher.publish(publication)))
        return found[0] if found else None

    def attempt(self, action: object) -> None:
        assert callable(action)
        try:
            action()
        except (ChainkitError, Refusal):
            pass
        except Killed:
            self.journal.close()
            self.start()

    def check(self) -> None:
        assert max(Counter(self.chain.published()).values(), default=0) <= 1


def play(path: Path, seed: int) -> set[str]:
    """Play one seed to its calm end, and return what happened."""
    world = World(path, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.chain.is_calm = True
        for publication in PUBLICATIONS:
            calm = (world.calm_publish(publication) for _ in range(CALM_ROUNDS))
            assert any(calm), f"publication {publication.kind} was never published"
            world.check()
        assert len(world.chain.published()) == len(PUBLICATIONS)
    finally:
        world.journal.close()
    return world.chain.events


def test_process_pending__reorg_dropped_a_foreign_transaction_below__publishes_once(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "journal.db", seed=0)
    world.chain.is_calm = True
    world.chain.displace()
    world.chain.mine()
    assert world.publish(PUBLICATIONS[0])
    # Both are gone, and the gateway has only its own to send again.
    world.chain.blocks.clear()

    assert any(world.calm_publish(PUBLICATIONS[0]) for _ in range(CALM_ROUNDS))

    assert len(world.chain.published()) == 1
    world.journal.close()


@pytest.mark.parametrize("part", parts(SEEDS, 50), ids=span)
def test_publish__pool_of_any_mischief__each_payload_is_on_the_chain_once(
    tmp_path: Path, part: Sequence[int]
) -> None:
    happened: set[str] = set()
    for seed in part:
        try:
            happened |= play(tmp_path / f"{seed}.db", seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error

    if 0 in part:
        assert happened >= EVENTS
