"""Receipts of an endpoint that errs, and sending through one that loses answers."""

from typing import Any

import pytest
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from chainkit.changes import sign_call
from chainkit.errors import (
    EndpointUnavailable,
    InconsistentAnswer,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.signatures import keccak256
from chainkit.signing import KeySigner
from chainkit.transactions import (
    SignedTransaction,
    fetch_input,
    fetch_receipt,
    send_transaction,
    wait_for_receipt,
)
from support.fake_endpoint import FakeProvider, RpcError
from support.fake_registry import HEAD, OWNER_ADDRESS, FakeRegistry, block_hash

HASH = keccak256(b"transaction")
OTHER_HASH = keccak256(b"another")
SIGNER = KeySigner("keystore", bytes(31) + b"\x01")
SIGNED = SignedTransaction(b"\x02raw", HASH)
KNOWN = {"hash": "0x" + HASH.hex(), "input": "0xabcd"}


def receipt(**changes: Any) -> dict[str, Any]:
    return {
        "transactionHash": "0x" + HASH.hex(),
        "status": "0x1",
        "to": "0x" + "11" * 20,
        "blockNumber": "0x7",
        "blockHash": "0x" + block_hash(7).hex(),
        "logs": [],
        **changes,
    }


def log(**changes: Any) -> dict[str, Any]:
    return {
        "address": "0x" + "22" * 20,
        "topics": [],
        "data": "0x",
        "blockNumber": "0x7",
        "blockHash": "0x" + block_hash(7).hex(),
        "transactionHash": "0x" + HASH.hex(),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        **changes,
    }


def provider(**answers: Any) -> FakeProvider:
    return FakeProvider(FakeRegistry().answers() | answers)


def signing_answers(**changes: Any) -> dict[str, Any]:
    return {
        "eth_getTransactionCount": "0x5",
        "eth_maxPriorityFeePerGas": hex(10**9),
        "eth_feeHistory": {"baseFeePerGas": [hex(7 * 10**9), hex(8 * 10**9)]},
        **changes,
    }


def test_fetch_receipt__canonical__has_block_and_called_contract() -> None:
    endpoint = provider(eth_getTransactionReceipt=receipt(logs=[log()])).endpoint()

    found = fetch_receipt(endpoint, HASH)

    assert found is not None
    assert (found.succeeded, found.to, found.block.number) == (True, b"\x11" * 20, 7)
    assert [entry.log_index for entry in found.logs] == [0]


def test_fetch_receipt__unknown_transaction__is_none() -> None:
    assert fetch_receipt(provider(eth_getTransactionReceipt=None).endpoint(), HASH) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (receipt(blockHash="0x" + block_hash(8).hex()), "expected block 7"),
        (receipt(transactionHash="0x" + OTHER_HASH.hex()), "the same hash"),
        (receipt(logs=[log(transactionHash="0x" + OTHER_HASH.hex())]), "logs of its own"),
        (receipt(logs=[log(blockHash="0x" + block_hash(8).hex())]), "logs of its own"),
        (receipt(logs=[log(removed=True)]), "logs of its own"),
        (receipt(blockNumber=hex(HEAD + 1)), "a block"),
        (receipt(blockHash=None), "well-formed fields"),
        ({}, "well-formed fields"),
    ],
)
def test_fetch_receipt__contradicting_answer__is_inconsistent(
    answer: dict[str, Any], words: str
) -> None:
    endpoint = provider(eth_getTransactionReceipt=answer).endpoint()

    with pytest.raises(InconsistentAnswer, match=words):
        fetch_receipt(endpoint, HASH)


def test_fetch_input__no_transaction_beside_receipt__is_inconsistent() -> None:
    assert fetch_input(provider(eth_getTransactionByHash=KNOWN).endpoint(), HASH) == b"\xab\xcd"
    with pytest.raises(InconsistentAnswer, match="as there is a receipt"):
        fetch_input(provider(eth_getTransactionByHash=None).endpoint(), HASH)


def test_sign__call__has_chain_nonce_and_fees_and_is_the_owners() -> None:
    endpoint = provider(**signing_answers()).endpoint()

    signed = sign_call(endpoint, SIGNER, 31337, b"\x11" * 20, b"\x01", 40_000)

    fields = TypedTransaction.from_bytes(HexBytes(signed.raw)).as_dict()
    assert Account.recover_transaction(signed.raw) == OWNER_ADDRESS
    assert signed.hash == keccak256(signed.raw)
    assert (fields["chainId"], fields["nonce"], fields["gas"]) == (31337, 5, 50_000)
    assert (fields["maxPriorityFeePerGas"], fields["maxFeePerGas"]) == (10**9, 17 * 10**9)
    assert (fields["to"], fields["data"], fields["value"]) == (b"\x11" * 20, b"\x01", 0)


def test_sign__sender_has_waiting_transactions__is_refused() -> None:
    counts = {"latest": "0x5", "pending": "0x7"}
    answers = signing_answers(eth_getTransactionCount=lambda _, block: counts[block])

    with pytest.raises(RefusedRequest, match=f"{OWNER_ADDRESS}: expected none waiting .* got 2"):
        sign_call(provider(**answers).endpoint(), SIGNER, 1, b"\x11" * 20, b"", 40_000)


def test_send__refused__says_so_and_is_not_sent() -> None:
    endpoint = provider(
        eth_sendRawTransaction=RpcError(-32003, "insufficient funds"),
        eth_getTransactionByHash=None,
    ).endpoint()

    with pytest.raises(RefusedRequest, match="insufficient funds"):
        send_transaction(endpoint, SIGNED)


def test_send__answer_lost_then_already_known__counts_as_sent() -> None:
    refusing = provider(
        eth_sendRawTransaction=RpcError(-32000, "already known"), eth_getTransactionByHash=KNOWN
    )

    send_transaction(refusing.endpoint(), SIGNED)

    sent = [call[0] for request in refusing.requests for call in request]
    assert sent == ["eth_sendRawTransaction", "eth_getTransactionByHash"]


def test_send__no_answer_at_all__tells_the_hash_to_look_for() -> None:
    down = RpcError(-32099, "down")
    endpoint = provider(eth_sendRawTransaction=down, eth_getTransactionByHash=down).endpoint()

    with pytest.raises(TransactionFailed, match=f"0x{HASH.hex()}.*no clear answer"):
        send_transaction(endpoint, SIGNED)


def test_wait__receipt_after_a_fork_and_an_outage__is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit.transactions._POLL_SECONDS", 0)
    forked = receipt(blockHash="0x" + block_hash(8).hex())
    answers = [None, forked, *[RpcError(-32099, "down")] * 4, receipt()]
    endpoint = provider(eth_getTransactionReceipt=lambda _: answers.pop(0)).endpoint()

    assert wait_for_receipt(endpoint, HASH, 5).block.number == 7
    assert not answers


def test_wait__never_mined__fails_after_the_time_out() -> None:
    endpoint = provider(eth_getTransactionReceipt=None).endpoint()

    with pytest.raises(TransactionFailed, match=r"a receipt within 0 s, got none; it may still"):
        wait_for_receipt(endpoint, HASH, 0)


def test_wait__endpoint_down__fails_after_the_time_out() -> None:
    endpoint = provider(eth_getTransactionReceipt=RpcError(-32099, "down")).endpoint()

    with pytest.raises(TransactionFailed, match=r"a receipt within 0 s"):
        wait_for_receipt(endpoint, HASH, 0)
    with pytest.raises(EndpointUnavailable):
        fetch_receipt(endpoint, HASH)
