"""A node that judges an update of a contract wallet, whose chain is another one than its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainkit.contracts.deployment import read_deployment_record
from chainkit.identity import identifiers
from chainkit.identity.identifiers import MemberIdentifier
from chainkit.identity.text import eip191_digest
from chainkit.protocol.proto import envelopes_pb2, identity_associations_pb2
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from localnet.accounts import write_new_keystore
from localnet.anvil import Anvil
from localnet.commands import Background, Settings
from support.chains.chain import LocalChain
from support.identity import Installation, add, create, inbox_of, update
from support.network.api import Api
from support.network.wallet_chain import WalletChain, signed

from .test_node_operated import Operated, logged, wait_until

CHAIN_ID = 8453
OWNER = SigningKey(b"\x05" * 32)


@dataclass(frozen=True)
class RealWallet:
    """A contract on a chain, whose owner signs for it."""

    address: bytes
    block_number: int

    @property
    def identifier(self) -> MemberIdentifier:
        return identifiers.wallet_of(self.address)

    def sign(self, text: bytes) -> identity_associations_pb2.Signature:
        message = identity_associations_pb2.Signature()
        message.erc_6492.account_id = f"eip155:{CHAIN_ID}:0x{self.address.hex()}"
        message.erc_6492.block_number = self.block_number
        message.erc_6492.signature = signed(OWNER, eip191_digest(text))
        return message


@pytest.fixture(scope="module")
def wallets() -> Iterator[WalletChain]:
    with Anvil("--chain-id", str(CHAIN_ID)) as anvil:
        yield WalletChain(anvil)


@pytest.fixture
def service(
    settings: Settings, wallets: WalletChain, tmp_path: Path
) -> Iterator[tuple[Background, Api, Operated]]:
    keystore = tmp_path / "node.keystore"
    write_new_keystore(keystore, settings.password)
    running = Background(
        settings,
        tmp_path / "log",
        *("node", "run", "--keystore", keystore, "--database", tmp_path / "node.db"),
        *("--wallet-rpc", f"{CHAIN_ID}=http://127.0.0.1:1/{'secret' * 4}"),
        *("--wallet-rpc", f"{CHAIN_ID}={wallets.anvil.url}"),
        *("--grpc", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--stale-seconds", "0"),
        *("--log-format", "json"),
    )
    try:
        running.start()
        monitor = logged(running, "listening")["address"]
        port = logged(running, "node_listening")["port"]
        with closing(Api(f"http://127.0.0.1:{port}")) as api:
            yield running, api, Operated(port, monitor, api.channel, running)
    finally:
        running.stop()


@pytest.mark.conforms("I11", "I15")
def test_node__contract_wallets_of_another_chain__counts_once_their_chain_answers(
    chain: Anvil,
    settings: Settings,
    wallets: WalletChain,
    service: tuple[Background, Api, Operated],
) -> None:
    running, api, operated = service
    posts = LocalChain(chain, read_deployment_record(settings.record_path), settings.record_path)

    def publish(inbox_id: bytes, data: bytes) -> None:
        envelope = envelopes_pb2.ClientEnvelope()
        envelope.aad.target_topic = TopicKind.IDENTITY_UPDATE.topic(inbox_id)
        envelope.identity_update.ParseFromString(data)
        posts.publish_identity_update(inbox_id, envelope.SerializeToString())

    def inbox(address: bytes) -> str | None:
        return api.inbox_ids(f"0x{address.hex()}")[0]

    address = wallets.wallet(OWNER)
    deployed = RealWallet(address, wallets.endpoint.head().number)
    inbox_id = inbox_of(deployed)
    # After another test's reorg, anvil's clock is as far behind as the ancestor was old.
    later = max(posts.head().timestamp + 1, wallets.endpoint.head().timestamp)
    chain.request("evm_setNextBlockTimestamp", later)
    publish(inbox_id, update(inbox_id, create(deployed), add(Installation("app"), deployed)))
    wait_until(running, lambda: inbox(address) == inbox_id.hex())

    # It names the next block, which the endpoint does not have yet.
    other = wallets.wallet(OWNER)
    head = wallets.endpoint.head()
    early = RealWallet(other, head.number + 1)
    other_id = inbox_of(early)
    chain.request("evm_setNextBlockTimestamp", max(posts.head().timestamp, head.timestamp) + 60)
    publish(other_id, update(other_id, create(early)))
    wait_until(running, lambda: operated.samples()["updates_waiting",] == 1)
    assert inbox(other) is None

    wallets.anvil.request("evm_setNextBlockTimestamp", head.timestamp + 1)
    wallets.anvil.request("anvil_mine", "0x1")
    wait_until(running, lambda: inbox(other) == other_id.hex())
    wait_until(running, lambda: operated.samples()["updates_waiting",] == 0)
    lines = "\n".join(running.log_lines())
    assert "identity_update_waits" in lines and "identity_updates_go_on" in lines
    assert "secret" not in lines
