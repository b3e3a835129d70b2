"""Contracts that count for themselves on an anvil of their own, and a node that follows them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_abi import encode
from sqlalchemy import select

from chainkit.chain import Endpoint
from chainkit.contracts.artifacts import artifact
from chainkit.contracts.followed import FollowedDeployment, read_followed_deployment
from chainkit.protocol.envelope import ServedEnvelope, parse_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle, StepResult
from localnet.anvil import Anvil
from support import payloads
from support.chains.mined import GAS_LIMIT, MinedChain
from support.solidity import Transaction
from tools.solidity import compiled_contracts

GROUP = b"\x11" * 16
INBOX = b"\x22" * 32
KEY = SigningKey(b"\1" * 32)

INDEXED_MESSAGE = "MessageSent(bytes16 indexed groupId, bytes message, uint64 indexed sequenceId)"
PLAIN_MESSAGE = "MessageSent(bytes16 groupId, bytes message, uint64 sequenceId)"
INDEXED_UPDATE = (
    "IdentityUpdateCreated(bytes32 indexed inboxId, bytes update, uint64 indexed sequenceId)"
)
UPDATES = "CountingIdentityUpdates"
EVENTS = {
    "CountingGroupMessages": INDEXED_MESSAGE,
    "SilentGroupMessages": PLAIN_MESSAGE,
    UPDATES: INDEXED_UPDATE,
}


def compiled_codes() -> Mapping[str, bytes]:
    """Creation code of the contracts of tests/solidity, by name."""
    compiled = compiled_contracts("tests/solidity")
    return {name: contract.creation_code for name, contract in compiled.items()}


@dataclass(frozen=True)
class OtherChain:
    """Two contracts that count for themselves, and the record that says so."""

    mined: MinedChain
    endpoint: Endpoint
    messages: str
    updates: str
    record_path: Path

    def message(self, payload: bytes, sender: int = 1, group: bytes = GROUP) -> Transaction:
        signature = "addMessage(bytes16,bytes)"
        return Transaction(self.mined.accounts[sender], self.messages, signature, (group, payload))

    def bootstrapped(
        self, payloads: Mapping[int, bytes], sender: int = 1, group: bytes = GROUP
    ) -> Transaction:
        signature = "bootstrapMessages(bytes16,bytes[],uint64[])"
        arguments = (group, tuple(payloads.values()), tuple(payloads))
        return Transaction(self.mined.accounts[sender], self.messages, signature, arguments)

    def update(self, payload: bytes, sender: int = 1, inbox: bytes = INBOX) -> Transaction:
        signature = "addIdentityUpdate(bytes32,bytes)"
        return Transaction(self.mined.accounts[sender], self.updates, signature, (inbox, payload))


def commit(seed: int, group: bytes = GROUP) -> bytes:
    return payloads.commit(group, seed=seed)


def update(seed: int, originator_id: int = 1) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope.FromString(payloads.identity_update(INBOX, seed=seed))
    envelope.aad.target_originator = originator_id
    return envelope.SerializeToString()


@contextmanager
def other_chain(
    codes: Mapping[str, bytes],
    folder: Path,
    messages: str = "CountingGroupMessages",
    with_counters: bool = True,
    kept_states: int = 500,
) -> Iterator[OtherChain]:
    names = [messages, UPDATES]
    told = [name for name in names if with_counters and name.startswith("Counting")]
    about = {name: {"event": event} for name, event in EVENTS.items() if name in names}
    with _deployed(
        {name: codes[name] for name in names}, about, folder, told, kept_states
    ) as chain:
        yield chain


@contextmanager
def sparse_chain(
    codes: Mapping[str, bytes], folder: Path, nodes: Collection[SigningKey] = ()
) -> Iterator[OtherChain]:
    """Two contracts that emit payloads under any sequence ids, and the record that says so.

    Where ``nodes`` are given, the record names our registry, which lists them: 100, 200 and so on.
    """
    names = {"BootstrappedMessages": INDEXED_MESSAGE, "BootstrappedUpdates": INDEXED_UPDATE}
    about = {name: {"event": event, "sequence_ids": "sparse"} for name, event in names.items()}
    code = codes["BootstrappedPayloads"]
    with _deployed(dict.fromkeys(names, code), about, folder) as chain:
        if nodes:
            _register(chain, nodes)
        yield chain


def _register(chain: OtherChain, nodes: Collection[SigningKey]) -> None:
    mined, owner = chain.mined, chain.mined.accounts[0]
    address = mined.deploy(artifact("NodeRegistry").creation_code + encode(["address"], [owner]))
    record = json.loads(chain.record_path.read_text())
    record["node_registry"] = {"address": address, "block": mined.height()}
    chain.record_path.write_text(json.dumps(record))
    signature = "addNode(address,bytes,string)"
    arguments = [(owner, key.public_key, "https://node.example") for key in nodes]
    mined.mine([Transaction(owner, address, signature, each) for each in arguments])


@contextmanager
def _deployed(
    codes: Mapping[str, bytes],
    about: Mapping[str, Mapping[str, str]],
    folder: Path,
    told: Collection[str] = (),
    kept_states: int = 500,
) -> Iterator[OtherChain]:
    """Deploy a contract of messages and one of updates; ``told`` are those whose counter is."""
    limits = ("--gas-limit", str(10 * GAS_LIMIT), "--prune-history", str(kept_states))
    options = ("--no-mining", "--order", "fifo", *limits)
    with Anvil(*options, caps_gas=False) as anvil:
        mined = MinedChain(anvil)
        contracts: list[dict[str, Any]] = []
        counters: dict[str, Any] = {}
        for originator_id, (name, code) in enumerate(codes.items()):
            place = {"address": mined.deploy(code), "block": mined.height()}
            contracts.append(place | {"name": name, "originator_id": originator_id} | about[name])
            counter = place | {"function": "sequenceId()"}
            counters[str(originator_id)] = counter if name in told else None
        path = folder / "record.json"
        record = {
            "format": 1,
            "chain_id": anvil.endpoint.chain_id(),
            "genesis_hash": "0x" + anvil.endpoint.header(0).hash.hex(),
            "payload_contracts": contracts,
            "counters": counters,
        }
        path.write_text(json.dumps(record))
        addresses = [str(contract["address"]) for contract in contracts]
        yield OtherChain(mined, anvil.endpoint, *addresses, record_path=path)


class OtherNode:
    """A node's database for such a deployment."""

    def __init__(self, chain: OtherChain, path: Path, **settings: Any) -> None:
        self.endpoint = chain.endpoint
        self.deployment: FollowedDeployment = read_followed_deployment(chain.record_path)
        self.settings = IndexerSettings(self.deployment, **settings)
        self.path = path

    @contextmanager
    def store(self) -> Iterator[Store]:
        store = Store.open(str(self.path), Identity.of(self.deployment, KEY.public_key))
        try:
            yield store
        finally:
            store.close()

    def step(self) -> StepResult:
        with self.store() as store:
            # By range where it can be: there, logs are withheld.
            reader = PageReader(self.settings, Signer(KEY), recent_blocks=0)
            return step(self.endpoint, store, self.settings, reader)

    def catch_up(self) -> None:
        while not isinstance(self.step(), Idle):
            pass

    def rows(self, table: Any) -> list[dict[str, Any]]:
        query = select(table).order_by(*table.primary_key)
        with self.store() as store, store.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def served(self) -> list[ServedEnvelope]:
        return [parse_originator_envelope(row["envelope"]) for row in self.rows(schema.envelopes)]

    def tables(self) -> list[list[dict[str, Any]]]:
        of_chain = (schema.envelopes, schema.envelope_logs, schema.quarantine, schema.cursor)
        return [self.rows(table) for table in of_chain]


def publish_some(chain: OtherChain) -> None:
    """Four messages, of which two are not served, and five updates, of which two are not."""
    chain.mined.mine([chain.message(commit(1)), chain.update(update(1)), chain.update(b"\xff")])
    chain.mined.mine([chain.message(commit(2, GROUP[:15] + b"\0")), chain.message(b"")])
    chain.mined.mine_nothing()
    # The second of these names an originator that is no contract's.
    chain.mined.mine([chain.update(update(2)), chain.update(update(3, originator_id=7))])
    chain.mined.mine([chain.update(update(4)), chain.message(commit(3))])
