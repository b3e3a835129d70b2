"""Chains of geth, each with the contracts and some traffic; skipped where geth is not built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from eth_account import Account

from chainkit.chain import Endpoint
from chainkit.chain.sending import transaction_fees
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.contracts.interface import shipped_interface
from localnet.deployment import PARAMETERS, run_ape_script
from support.chains.chain import dev_address, dev_secret
from support.chains.geth import CHAIN_ID, Geth, program

MESSAGES = 30


@dataclass
class GethChain:
    """A geth with the contracts deployed."""

    geth: Geth
    record: DeploymentRecord
    record_path: Path

    @property
    def url(self) -> str:
        return self.geth.url

    @property
    def endpoint(self) -> Endpoint:
        return self.geth.endpoint

    def post(self, payload: bytes) -> None:
        """Publish a message in a block of its own."""
        tip, maximum = transaction_fees(self.endpoint)
        encode = shipped_interface("GroupMessages").encode
        fields = {
            "chainId": CHAIN_ID,
            "nonce": self.endpoint.pending_transaction_count(dev_address(2)),
            "to": self.record.group_messages.address,
            "data": encode("addMessage", b"\x11" * 32, payload),
            "gas": 1_000_000,
            "maxFeePerGas": maximum,
            "maxPriorityFeePerGas": tip,
        }
        signed = Account.sign_transaction(fields, dev_secret(2))
        self.endpoint.send_raw(bytes(signed.raw_transaction))
        self.geth.mine()

    def publish(self, messages: int, seed: int) -> None:
        """Publish by the script of real networks, while geth mines."""
        with self.geth.mining():
            run_ape_script(
                "traffic",
                self.url,
                *("--record", str(self.record_path), "--messages", str(messages)),
                *("--seed", str(seed), "--json"),
            )


@pytest.fixture(scope="module", params=["osaka", "amsterdam"])
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GethChain]:
    if program() is None:
        pytest.skip("no geth: `make test-chains` builds it where Go is")
    folder = tmp_path_factory.mktemp(request.param)
    parameters, record = folder / "parameters.json", folder / "deployment.json"
    content = json.loads(PARAMETERS.read_text()) | {"chain_id": CHAIN_ID}
    parameters.write_text(json.dumps(content))
    with Geth(folder, request.param) as geth:
        # The base fee falls by an eighth in each of these blocks.
        with geth.mining():
            paths = ("--parameters", str(parameters), "--record", str(record))
            run_ape_script("deploy", geth.url, "--account", "test::0", *paths)
        made = GethChain(geth, read_deployment_record(record), record)
        made.publish(MESSAGES, seed=7)
        yield made
