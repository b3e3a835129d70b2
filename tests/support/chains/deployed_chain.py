"""The contracts on a chain of an execution client other than anvil, deployed by the real script."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from eth_account import Account

from chainkit.chain import Endpoint
from chainkit.chain.sending import transaction_fees
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.contracts.interface import shipped_interface
from localnet.deployment import PARAMETERS, run_ape_script
from support.chains.chain import dev_address, dev_secret


class ExecutionClient(Protocol):
    """A program that serves a chain and mines its blocks."""

    url: str
    endpoint: Endpoint
    chain_id: int

    def mining(self) -> AbstractContextManager[None]:
        """Mine what is sent meanwhile."""


@dataclass
class DeployedChain:
    """A client's chain with the contracts deployed."""

    client: Any
    record: DeploymentRecord
    record_path: Path

    @classmethod
    def of(cls, client: ExecutionClient, folder: Path) -> Self:
        """Deploy the contracts; parameters and record are written to a folder."""
        parameters, record = folder / "parameters.json", folder / "deployment.json"
        content = json.loads(PARAMETERS.read_text()) | {"chain_id": client.chain_id}
        parameters.write_text(json.dumps(content))
        # The base fee falls by an eighth in each block that is empty.
        with client.mining():
            paths = ("--parameters", str(parameters), "--record", str(record))
            run_ape_script("deploy", client.url, "--account", "test::0", *paths)
        return cls(client, read_deployment_record(record), record)

    @property
    def url(self) -> str:
        return str(self.client.url)

    @property
    def endpoint(self) -> Endpoint:
        endpoint: Endpoint = self.client.endpoint
        return endpoint

    def send(self, payload: bytes) -> None:
        """Send a message; nothing is mined for it."""
        tip, maximum = transaction_fees(self.endpoint)
        encode = shipped_interface("GroupMessages").encode
        fields = {
            "chainId": self.client.chain_id,
            "nonce": self.endpoint.pending_transaction_count(dev_address(2)),
            "to": self.record.group_messages.address,
            "data": encode("addMessage", b"\x11" * 32, payload),
            "gas": 1_000_000,
            "maxFeePerGas": maximum,
            "maxPriorityFeePerGas": tip,
        }
        signed = Account.sign_transaction(fields, dev_secret(2))
        self.endpoint.send_raw(bytes(signed.raw_transaction))

    def publish(self, messages: int, seed: int) -> None:
        """Publish by the script of real networks, while the client mines."""
        with self.client.mining():
            run_ape_script(
                "traffic",
                self.url,
                *("--record", str(self.record_path), "--messages", str(messages)),
                *("--seed", str(seed), "--json"),
            )
