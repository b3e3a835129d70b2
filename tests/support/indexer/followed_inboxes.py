"""A fake chain with identity updates, its indexer, and the follower of inboxes behind each step."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from chainkit.errors import ChainError
from chainkit.identity.identifiers import MemberKind
from chainkit.identity.wallets import Wallets, WalletSignature
from chainkit.protocol.proto import envelopes_pb2, identity_associations_pb2
from chainkit.types import TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Idle
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.follower import InboxFollower
from support.chains.fake_chain import FakeChain, Post
from support.identity import ContractWallet, Wallet, add, create, inbox_of, revoke, update
from support.indexer.fake_node import FakeNode

ANN, BEN, CLEO = Wallet("ann"), Wallet("ben"), Wallet("cleo")
INBOX = inbox_of(ANN)
OTHER_INBOX = inbox_of(CLEO)


@dataclass(frozen=True)
class UpdatePost(Post):
    """An identity update of an inbox, on its topic."""

    kind: TopicKind = TopicKind.IDENTITY_UPDATE
    inbox_id: bytes = INBOX
    update: bytes = b""

    @property
    def identifier(self) -> bytes:
        return self.inbox_id

    @property
    def payload(self) -> bytes:
        envelope = envelopes_pb2.ClientEnvelope()
        envelope.aad.target_topic = self.kind.topic(self.inbox_id)
        parsed = identity_associations_pb2.IdentityUpdate.FromString(self.update)
        envelope.identity_update.CopyFrom(parsed)
        return envelope.SerializeToString()


CREATED = UpdatePost("create", update=update(INBOX, create(ANN)))
BEN_ADDED = UpdatePost("add ben", update=update(INBOX, add(BEN, ANN)))
BEN_REVOKED = UpdatePost("revoke ben", update=update(INBOX, revoke(BEN, ANN)))
OTHER_CREATED = UpdatePost(
    "create other", inbox_id=OTHER_INBOX, update=update(OTHER_INBOX, create(CLEO))
)
BEN_ADDED_TO_OTHER = UpdatePost(
    "add ben to other", inbox_id=OTHER_INBOX, update=update(OTHER_INBOX, add(BEN, CLEO))
)


class WalletChains:
    """Answers for contract wallets of chain 1; an answer is True, False or an error."""

    def __init__(self) -> None:
        self.answer: bool | ChainError = True
        self.now = 0.0
        self.seconds = 0.0
        self.asked: list[tuple[int, bytes]] = []

    def at(self, originator_ns: int) -> Wallets:
        def is_valid(signature: WalletSignature) -> bool:
            self.asked.append((originator_ns, signature.address))
            self.now += self.seconds
            if isinstance(self.answer, ChainError):
                raise self.answer
            return self.answer

        return Wallets({1}, is_valid)

    def clock(self) -> float:
        return self.now


class Node:
    """A fake chain, its indexer, and the follower behind each of its steps."""

    def __init__(self, path: Path, chain: FakeChain | None = None) -> None:
        self.chain = chain or FakeChain()
        self.indexer = FakeNode(self.chain, path)
        self.log = EnvelopeLog(self.indexer.store)
        self.chains = WalletChains()
        self.said: list[int] = []
        self.start()

    def start(self) -> None:
        """Begin with nothing in memory, as after a kill."""
        self.follower = InboxFollower(
            self.indexer.store, self.log, self.chains.at, self.said.append, self.chains.clock
        )

    def mine(self, *posts: Post) -> None:
        self.chain.mine(list(posts))
        self.catch_up()

    def catch_up(self) -> None:
        result = self.indexer.step()
        while not isinstance(result, Idle):
            self.follower.succeeded(result, 0)
            result = self.indexer.step()
        self.follower.succeeded(result, 0)

    def idle(self, seconds: float = 0) -> None:
        """Take a step without news, after so long."""
        self.chains.now += seconds
        self.catch_up()

    def cursor(self) -> int:
        ((_, sequence_id),) = self.indexer.rows(schema.inbox_cursors)
        return int(sequence_id)

    def inbox_of(self, *wallets: Wallet | ContractWallet) -> list[str | None]:
        asked = [(str(wallet.identifier), MemberKind.ETHEREUM) for wallet in wallets]
        return list(asyncio.run(self.log.inbox_ids(asked)))

    def refused(self) -> list[tuple[int, str]]:
        rows = self.indexer.rows(schema.refused_updates)
        return [(sequence_id, reason) for _, sequence_id, _, reason in rows]
