"""Receipts of an endpoint that errs, and sending through one that loses answers."""

from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes
from requests import ReadTimeout

from chainkit.chain import Endpoint
from chainkit.chain.sending import (
    Sending,
    SignedTransaction,
    TransactionRequest,
    draft_transaction,
    send_transaction,
    wait_for_receipt,
)
from chainkit.chain.transactions import estimate_gas, fetch_input, fetch_receipt
from chainkit.council.changes import sign_request
from chainkit.council.signing import KeySigner, transaction_cost
from chainkit.errors import (
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    OutcomeUnknown,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.signatures import keccak256
from chainkit.types import BlockReference
from support.council.fake_registry import HEAD, OWNER_ADDRESS, FakeRegistry, block_hash
from support.endpoints.fake_endpoint import FakeProvider, RpcError

HASH = keccak256(b"transaction")
OTHER_HASH = keccak256(b"another")
SIGNER = KeySigner("keystore", bytes(31) + b"\x01")
SIGNED = SignedTransaction(b"\x02raw", HASH)
GWEI = 10**9
TARGET = b"\x11" * 20
BLOCK = BlockReference(7, block_hash(7))
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


def request(data: bytes = b"", gas: int = 40_000) -> TransactionRequest:
    return TransactionRequest(31337, TARGET, data, gas)


def base_fee(wei: int) -> dict[str, Any]:
    return {"baseFeePerGas": [hex(wei)]}


def draft(max_cost: int = 10**18, **answers: Any) -> dict[str, Any]:
    """Draft a call of 50,000 gas."""
    endpoint = provider(**signing_answers(**answers)).endpoint()
    return draft_transaction(endpoint, OWNER_ADDRESS, request(), max_cost)


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

    signed = sign_request(Sending(endpoint), SIGNER, request(b"\x01"))

    fields = TypedTransaction.from_bytes(HexBytes(signed.raw)).as_dict()
    assert Account.recover_transaction(signed.raw) == OWNER_ADDRESS
    assert signed.hash == keccak256(signed.raw)
    assert (fields["chainId"], fields["nonce"], fields["gas"]) == (31337, 5, 50_000)
    assert (fields["maxPriorityFeePerGas"], fields["maxFeePerGas"]) == (10**9, 17 * 10**9)
    assert (fields["to"], fields["data"], fields["value"]) == (b"\x11" * 20, b"\x01", 0)
    assert transaction_cost(signed.raw) == 50_000 * 17 * 10**9


@pytest.mark.parametrize(
    ("base", "tip"),
    [(0, 100 * GWEI), (33 * GWEI, 100 * GWEI), (200 * GWEI, 600 * GWEI)],
    ids=["no base fee", "usual tip", "crowded chain"],
)
def test_draft__tip_above_what_chains_take__is_refused(base: int, tip: int) -> None:
    fees = draft(eth_feeHistory=base_fee(base), eth_maxPriorityFeePerGas=hex(tip))

    assert (fees["maxPriorityFeePerGas"], fees["maxFeePerGas"]) == (tip, 2 * base + tip)
    with pytest.raises(RefusedRequest, match=f"tip .*: expected at most {tip:,} .*{tip + 1:,}"):
        draft(eth_feeHistory=base_fee(base), eth_maxPriorityFeePerGas=hex(tip + 1))


def test_draft__cost_above_the_limit__is_refused_in_ether_and_in_wei() -> None:
    cost = 50_000 * 17 * GWEI

    assert draft(max_cost=cost)["gas"] == 50_000
    with pytest.raises(ConfigurationError) as refused:
        draft(max_cost=cost - 1)

    assert refused.value.expected == "at most 0.000849999999999999 ether (849,999,999,999,999 wei)"
    assert refused.value.got == "0.00085 ether (850,000,000,000,000 wei)"
    assert "--max-cost" in refused.value.place


@pytest.mark.parametrize(
    "answers",
    [
        {"eth_feeHistory": {"baseFeePerGas": [hex(10**15)]}},
        {"eth_estimateGas": hex(10**9)},
    ],
    ids=["base fee", "gas"],
)
def test_draft__endpoint_that_names_any_figure__costs_no_more_than_the_usual_limit(
    answers: dict[str, Any],
) -> None:
    endpoint = provider(**signing_answers(**{"eth_estimateGas": "0x9c40"} | answers)).endpoint()
    gas = estimate_gas(endpoint, TARGET, b"", OWNER_ADDRESS, BLOCK)

    with pytest.raises(ConfigurationError, match=r"at most 0\.1 ether \(100,000,000"):
        sign_request(Sending(endpoint), SIGNER, request(gas=gas))


def test_sign__sender_has_waiting_transactions__is_refused() -> None:
    answers = signing_answers(
        eth_getTransactionCount=lambda _, block: "0x7" if block == "pending" else "0x5"
    )

    with pytest.raises(RefusedRequest, match=f"{OWNER_ADDRESS}: expected none waiting .* got 2"):
        sign_request(Sending(provider(**answers).endpoint()), SIGNER, request())


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


@pytest.mark.parametrize(
    "words",
    [
        *("already known", "known transaction: 1a2b", "transaction already imported"),
        *(
            "AlreadyKnown",
            "Known transaction",
            "Transaction with the same hash was already imported.",
        ),
        *(
            "nonce too low: address 0x1, tx: 1 state: 2",
            "Nonce too low",
            "OldNonce, Current nonce: 1",
        ),
        "the tx doesn't have the correct nonce. account has nonce of: 3 tx has nonce of: 2",
        *("replacement transaction underpriced", "ReplacementNotAllowed"),
        "could not replace existing tx",
    ],
)
@pytest.mark.parametrize("code", [-32000, -32010])
def test_send__words_of_a_transaction_in_the_pool__outcome_is_unknown(
    words: str, code: int
) -> None:
    refusing = provider(eth_sendRawTransaction=RpcError(code, words), eth_getTransactionByHash=None)

    with pytest.raises(OutcomeUnknown, match=f"0x{HASH.hex()}.*it may still be mined"):
        send_transaction(refusing.endpoint(), SIGNED)


@pytest.mark.parametrize(
    "words", ["insufficient funds", "unknown transaction type", "nonce too high"]
)
def test_send__other_words_after_a_lost_answer__outcome_is_unknown(words: str) -> None:
    refusing = provider(
        eth_sendRawTransaction=RpcError(-32000, words), eth_getTransactionByHash=None
    )
    with pytest.raises(RefusedRequest, match=words):
        send_transaction(refusing.endpoint(), SIGNED)
    refusing.interruptions = [ReadTimeout()]

    with pytest.raises(OutcomeUnknown, match="it may still be mined"):
        send_transaction(refusing.endpoint(), SIGNED)


def test_send__already_known_and_the_look_up_lags__receipt_is_waited_for() -> None:
    seen: list[str] = []
    endpoint = provider(
        eth_sendRawTransaction=RpcError(-32000, "already known"),
        eth_getTransactionByHash=None,
        eth_getTransactionReceipt=lambda _: receipt() if len(seen) else seen.append("") or None,
    ).endpoint()

    assert Sending(endpoint).send(SIGNED).block.number == 7


def test_send__already_known_and_never_mined__says_what_may_still_happen() -> None:
    endpoint = provider(
        eth_sendRawTransaction=RpcError(-32000, "nonce too low"),
        eth_getTransactionByHash=None,
        eth_getTransactionReceipt=None,
    ).endpoint()

    with pytest.raises(OutcomeUnknown) as raised:
        Sending(endpoint, timeout_seconds=0).send(SIGNED)

    assert str(raised.value) == (
        f"transaction 0x{HASH.hex()}: expected a receipt within 0 s, "
        "got 'nonce too low': it may still be mined"
    )


@pytest.mark.parametrize("asked", [Endpoint.transaction, Endpoint.receipt, fetch_receipt])
def test_look_up__transactions_are_being_indexed__is_not_yet_known(
    asked: Callable[[Endpoint, bytes], object],
) -> None:
    words = "transaction indexing is in progress"
    indexing = RpcError(-32000, words, words)
    endpoint = provider(
        eth_getTransactionByHash=indexing, eth_getTransactionReceipt=indexing
    ).endpoint()

    assert asked(endpoint, HASH) is None
    assert endpoint.receipts([HASH]) == endpoint.transactions([HASH]) == [None]


def test_call__sentence_in_the_place_of_revert_data__is_no_data() -> None:
    data: list[str | None] = []
    for said in ("transaction indexing is in progress", "0x", "0x08c379a0", "0x123"):
        endpoint = provider(eth_call=RpcError(3, "execution reverted", said)).endpoint()
        with pytest.raises(RefusedRequest) as raised:
            endpoint.call(TARGET, b"", BLOCK)
        data.append(raised.value.data)

    assert data == [None, "0x", "0x08c379a0", None]


def test_send__no_answer_at_all__tells_the_hash_to_look_for() -> None:
    down = RpcError(-32099, "down")
    endpoint = provider(eth_sendRawTransaction=down, eth_getTransactionByHash=down).endpoint()

    with pytest.raises(TransactionFailed, match=f"0x{HASH.hex()}.*no clear answer"):
        send_transaction(endpoint, SIGNED)


def test_wait__receipt_after_a_fork_and_an_outage__is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit.chain.sending._POLL_SECONDS", 0)
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
