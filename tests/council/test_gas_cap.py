"""Bounds above what one transaction carries: a caution, and the limit of a chain as Ethereum's."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.chain.refusals import tells_of_impossible_transaction
from chainkit.chain.sending import Sending, TransactionRequest
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP
from chainkit.council.calls.cautions import LARGEST_CARRIED
from chainkit.council.changes import sign_request
from chainkit.errors import RefusedRequest
from chainkit.types import Receipt
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.chains.tampering import ADMINISTRATOR
from support.command_line import run, write_keystore
from support.council.offline import in_one_line
from support.council.signers import dev_signer

NAME = "GroupMessages"
SENDER = 4


def publish(chain: LocalChain, size: int) -> Receipt:
    """Publish a payload without a zero byte, as any account may."""
    to, head = chain.record.group_messages.address, chain.head().reference
    data = shipped_interface(NAME).encode("addMessage", b"\1" * 16, b"\1" * size)
    gas = estimate_gas(chain.endpoint, to, data, dev_address(SENDER), head)
    request = TransactionRequest(chain.record.chain_id, to, data, gas)
    sending = Sending(chain.endpoint, max_cost=10**18)
    return sending.send(sign_request(sending, dev_signer(SENDER), request))


def test_set_bounds__above_what_a_transaction_carries__is_a_caution_and_the_chains_own_limit(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    bounds = ("--minimum", 1, "--maximum", PAYLOAD_SIZE_CAP, "--broadcast")
    place = ("--rpc", local_chain.url, "--deployment", local_chain.record_path)
    key = write_keystore(tmp_path, dev_secret(ADMINISTRATOR))

    outcome = run("contracts", "set-bounds", NAME, *bounds, *place, *key)

    assert outcome.code == 0, outcome.err
    assert "carries some 418,000 bytes; another chain may" in in_one_line(outcome.out)
    # Without a limit of its own, a quarter more gas than estimated would pass the cap.
    assert publish(local_chain, LARGEST_CARRIED).succeeded
    with pytest.raises(RefusedRequest) as refused:
        publish(local_chain, LARGEST_CARRIED + 1_000)
    assert tells_of_impossible_transaction(str(refused.value.got))
