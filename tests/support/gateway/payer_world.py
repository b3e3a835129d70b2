"""A payer's account on a chain in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.council.signing.key import KeySigner
from chainkit.errors import TransactionFailed
from chainkit_gateway.chain_publisher import ChainPublisher
from chainkit_gateway.journal import Journal
from chainkit_gateway.payer_account import REPLACE_SECONDS, PayerAccount
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication
from support import publishes
from support.gateway.fake_chain import CHAIN_ID, CONTRACTS, FakeChain

COMMIT = route(publishes.commit(), "ann")
UPDATE = route(publishes.identity_update(), "ben")
LATER = round(REPLACE_SECONDS * 10**9)


class World:
    """A payer's account that can be killed, its chain and its clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chain = FakeChain()
        self.now_ns = 10**18
        self.is_mined_while_waiting = True
        self.start()

    def start(self) -> None:
        self.journal = Journal.open(self.path)
        signer = KeySigner("payer", b"\7" * 32)
        self.account = PayerAccount(
            self.chain, signer, self.journal, CONTRACTS.values(), now_ns=lambda: self.now_ns
        )
        self.publisher = ChainPublisher(
            self.account, CHAIN_ID, CONTRACTS, seconds=1, pause=lambda _: self.wait()
        )

    def wait(self) -> None:
        if self.is_mined_while_waiting and self.chain.waiting:
            self.chain.mine()

    def send(self, publication: Publication = COMMIT) -> None:
        """Send a payload, and give up before it is mined."""
        self.is_mined_while_waiting = False
        with pytest.raises(TransactionFailed, match="expected a receipt within 1 s"):
            self.publisher.publish(publication)
        self.is_mined_while_waiting = True

    def restart(self, path: Path | None = None) -> None:
        """Start again, with this journal."""
        self.journal.close()
        self.path = path or self.path
        self.start()
