"""A fresh anvil with the real contracts for each test, and the levers to move and fork it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import eth_abi
import pytest
from eth_account import Account

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import BlockHeader
from localnet.accounts import COUNCIL as REGISTRY_OWNER
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.deployment import deploy


@cache
def dev_secret(number: int) -> bytes:
    """The well-known private key of an anvil development account."""
    return bytes(development_account(number).key)


def dev_address(number: int) -> str:
    """The address of an anvil development account."""
    return Account.from_key(dev_secret(number)).address


@dataclass
class LocalChain:
    """An anvil with the contracts deployed; it mines each transaction at once unless paused."""

    anvil: Anvil
    record: DeploymentRecord
    record_path: Path

    @property
    def url(self) -> str:
        return self.anvil.url

    @property
    def endpoint(self) -> Endpoint:
        return self.anvil.endpoint

    def head(self) -> BlockHeader:
        return self.endpoint.head()

    def send(self, to: bytes, data: bytes, sender: int = 2, gas: int = 5_000_000) -> bytes:
        secret = dev_secret(sender)
        nonce = self.anvil.request("eth_getTransactionCount", dev_address(sender), "pending")
        transaction = {
            "chainId": self.record.chain_id,
            "nonce": int(nonce, 16),
            "to": to,
            "data": data,
            "gas": gas,
            "maxFeePerGas": 10**11,
            "maxPriorityFeePerGas": 10**9,
        }
        signed = Account.sign_transaction(transaction, secret)
        return self.send_raw(bytes(signed.raw_transaction))

    def send_raw(self, raw: bytes) -> bytes:
        """Return the transaction's hash; unless mining is paused, it is mined by then."""
        value = self.anvil.request("eth_sendRawTransaction", "0x" + raw.hex())
        while self.anvil.request("anvil_getAutomine") and not self.endpoint.receipt(
            parse_bytes(value)
        ):
            time.sleep(0.005)  # anvil answers before it mines
        return parse_bytes(value, 32)

    def publish_message(self, group_id: bytes, payload: bytes, sender: int = 2) -> bytes:
        data = calldata_of("addMessage(bytes32,bytes)", group_id, payload)
        return self.send(self.record.group_messages.address, data, sender)

    def publish_identity_update(self, inbox_id: bytes, payload: bytes, sender: int = 2) -> bytes:
        data = calldata_of("addIdentityUpdate(bytes32,bytes)", inbox_id, payload)
        return self.send(self.record.identity_updates.address, data, sender)

    def add_node(self, owner_address: str, public_key: bytes, http_address: str) -> int:
        """Register a node and return its id."""
        data = calldata_of("addNode(address,bytes,string)", owner_address, public_key, http_address)
        transaction = self.send(self.record.node_registry.address, data, REGISTRY_OWNER)
        receipt = self.endpoint.receipt(transaction)
        assert receipt is not None and receipt["status"] == "0x1", receipt
        updated = [log for log in receipt["logs"] if len(log["topics"]) == 1]
        return int(updated[-1]["data"][2:66], 16)

    def pause_mining(self) -> None:
        self.anvil.request("evm_setAutomine", False)

    def resume_mining(self) -> None:
        self.anvil.request("evm_setAutomine", True)

    def mine(self, blocks: int = 1) -> None:
        for _ in range(blocks):
            self.anvil.request("evm_mine")

    def raw_transaction(self, transaction_hash: bytes) -> bytes:
        raw = self.anvil.request("eth_getRawTransactionByHash", "0x" + transaction_hash.hex())
        return parse_bytes(raw)

    def reorg(self, depth: int, transactions: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last ``depth`` blocks; each raw transaction goes into the block at its
        offset (from 0), what is not listed is dropped."""
        listed = [["0x" + raw.hex(), offset] for raw, offset in transactions]
        self.anvil.request("anvil_reorg", depth, listed)

    def rewind(self, depth: int) -> None:
        self.anvil.request("anvil_rollback", depth)


def calldata_of(signature: str, *arguments: object) -> bytes:
    """Return the calldata of a call, such as of ``addNode(address,bytes,string)``."""
    types = signature[signature.index("(") + 1 : -1].split(",")
    return keccak256(signature.encode())[:4] + eth_abi.encode(types, arguments)


@dataclass(frozen=True)
class Deployment:
    """The transactions of the deploy script, to be sent again to each fresh anvil."""

    record: dict[str, object]
    raw_transactions: list[str]


@pytest.fixture(scope="session")
def local_deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The deployment by one worker of a run, for all workers: its compiler takes longest."""
    base = tmp_path_factory.getbasetemp()
    # Each worker has its own folder in the run's; without workers, the folder is the run's.
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = folder / "local-deployment.json"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(asdict(_deployed(tmp_path_factory.mktemp("deployment")))))
            partial.rename(path)
    return Deployment(**json.loads(path.read_text()))


def _deployed(folder: Path) -> Deployment:
    path = folder / "record.json"
    with Anvil() as anvil:
        deploy(anvil.url, path)
        read_deployment_record(path)
        raw = [
            anvil.request("eth_getRawTransactionByHash", transaction)
            for number in range(1, anvil.endpoint.head().number + 1)
            for transaction in anvil.request("eth_getBlockByNumber", hex(number), False)[
                "transactions"
            ]
        ]
    return Deployment(json.loads(path.read_text()), raw)


@contextmanager
def redeployed(
    deployment: Deployment,
    folder: Path,
    *options: str,
    block_seconds: int | None = None,
    caps_gas: bool = True,
) -> Iterator[LocalChain]:
    """Start a fresh anvil and deploy to it; with ``block_seconds``, always the same blocks."""
    with Anvil(*options, caps_gas=caps_gas) as anvil:
        if block_seconds is not None:
            # With a time of its own, the same transactions give the same blocks.
            anvil.request("anvil_setBlockTimestampInterval", block_seconds)
        yield send_deployment(deployment, anvil, folder / "deployment.json")


def send_deployment(deployment: Deployment, anvil: Anvil, record_path: Path) -> LocalChain:
    """Send the deployment's own transactions to a fresh anvil: the same addresses again."""
    genesis = "0x" + anvil.endpoint.header(0).hash.hex()
    record_path.write_text(json.dumps(deployment.record | {"genesis_hash": genesis}))
    chain = LocalChain(anvil, read_deployment_record(record_path), record_path)
    for raw in deployment.raw_transactions:
        chain.send_raw(parse_bytes(raw))
    return chain


@pytest.fixture
def local_chain(local_deployment: Deployment, tmp_path: Path) -> Iterator[LocalChain]:
    """A fresh chain for each test."""
    with redeployed(local_deployment, tmp_path) as chain:
        yield chain
