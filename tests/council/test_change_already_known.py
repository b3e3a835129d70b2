"""A change whose transaction an endpoint knows already, on a real anvil: its receipt is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainkit.contracts.state import ContractState
from support.chains.chain import LocalChain, dev_secret
from support.chains.tampering import ADMINISTRATOR
from support.command_line import run, write_keystore
from support.endpoints.fault_proxy import Call, Fault, FaultProxy
from support.endpoints.faults import error

NAME = "GroupMessages"


def _unknown(_: Call, answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"result": None}


@pytest.mark.parametrize(
    "words", ["already known", "nonce too low", "replacement transaction underpriced"]
)
def test_pause__endpoint_knows_it_already_and_its_look_up_lags__is_read_back(
    local_chain: LocalChain, tmp_path: Path, words: str
) -> None:
    signer = write_keystore(tmp_path, dev_secret(ADMINISTRATOR))
    with FaultProxy(local_chain.url) as endpoint:
        # The transaction arrives at anvil; the answer is what a second attempt would get.
        sent = frozenset({"eth_sendRawTransaction"})
        endpoint.arm(Fault("known", of_call=error(-32000, words), methods=sent))
        looked_up = frozenset({"eth_getTransactionByHash"})
        endpoint.arm(Fault("lagging", of_call=_unknown, methods=looked_up))
        place = ("--rpc", endpoint.url, "--deployment", local_chain.record_path)

        paused = run("contracts", "pause", NAME, "--broadcast", *signer, *place)

    assert paused.code == 0, paused.err
    assert "read back as planned" in paused.out
    address = local_chain.record.group_messages.address
    state = ContractState(local_chain.endpoint, local_chain.head().reference)
    assert state.ask(NAME, address, "paused")
