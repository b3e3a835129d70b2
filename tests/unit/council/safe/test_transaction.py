import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils import to_checksum_address
from hypothesis import given

from chainkit.council.safe import InnerCall, Operation, SafeTransaction, encode_batch
from chainkit.errors import MalformedData
from support.council.safe_eth_py import safe_eth_py
from support.council.safes import transactions
from support.vectors import case_name, from_hex, load

CASES = load("safe")["transactions"]
MULTI_SEND = b"\xaa" * 20
FIRST, SECOND = InnerCall(b"\x01" * 20, b"first"), InnerCall(b"\x02" * 20, b"second")


def of_calls(*calls: InnerCall) -> SafeTransaction:
    return SafeTransaction.of_calls(
        chain_id=31337, safe=b"\x05" * 20, nonce=7, calls=calls, multi_send=MULTI_SEND
    )


def of_case(case: dict[str, Any]) -> SafeTransaction:
    return SafeTransaction(
        chain_id=case["chainId"],
        safe=from_hex(case["safe"]),
        to=from_hex(case["to"]),
        value=int(case["value"]),
        data=from_hex(case["data"]),
        operation=Operation(case["operation"]),
        safe_tx_gas=int(case["safeTxGas"]),
        base_gas=int(case["baseGas"]),
        gas_price=int(case["gasPrice"]),
        gas_token=from_hex(case["gasToken"]),
        refund_receiver=from_hex(case["refundReceiver"]),
        nonce=int(case["nonce"]),
    )


def independent(transaction: SafeTransaction) -> Any:
    """The same transaction in safe-eth-py."""
    return safe_eth_py().SafeTx(
        None,
        to_checksum_address(transaction.safe),
        to_checksum_address(transaction.to),
        transaction.value,
        transaction.data,
        int(transaction.operation),
        transaction.safe_tx_gas,
        transaction.base_gas,
        transaction.gas_price,
        to_checksum_address(transaction.gas_token),
        to_checksum_address(transaction.refund_receiver),
        safe_nonce=transaction.nonce,
        safe_version="1.4.1",
        chain_id=transaction.chain_id,
    )


def lowercase(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: lowercase(item) for name, item in value.items()}
    return value.lower() if isinstance(value, str) else value


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_hash__transaction_of_a_vector__gives_what_ethers_computes(case: dict[str, Any]) -> None:
    transaction = of_case(case)

    assert transaction.domain_hash == from_hex(case["domainHash"])
    assert transaction.message_hash == from_hex(case["messageHash"])
    assert transaction.hash == from_hex(case["hash"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_typed_data__transaction_of_a_vector__is_what_ethers_would_sign(
    case: dict[str, Any],
) -> None:
    ours, theirs = of_case(case).typed_data(), case["typedData"]

    assert ours["types"] == theirs["types"]
    assert ours["primaryType"] == theirs["primaryType"]
    assert list(ours["message"]) == [field["name"] for field in ours["types"]["SafeTx"]]
    assert lowercase(ours["message"]) == lowercase(theirs["message"])
    # ethers writes the chain id in hex, Safe's own programs as a number.
    domain = theirs["domain"] | {"chainId": int(theirs["domain"]["chainId"], 16)}
    assert lowercase(ours["domain"]) == lowercase(domain)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_exec_calldata__signatures_of_a_vector__is_what_ethers_encodes(
    case: dict[str, Any],
) -> None:
    assert of_case(case).exec_calldata(from_hex(case["packed"])) == from_hex(case["execCalldata"])


@given(transactions)
def test_hash__any_transaction__equals_that_of_safe_eth_py(transaction: SafeTransaction) -> None:
    theirs = independent(transaction)

    assert transaction.hash == bytes(theirs.safe_tx_hash)
    preimage = b"\x19\x01" + transaction.domain_hash + transaction.message_hash
    assert preimage == bytes(theirs.safe_tx_hash_preimage)


@given(transactions)
def test_typed_data__any_transaction__a_wallet_signs_our_hash(transaction: SafeTransaction) -> None:
    message = encode_typed_data(full_message=transaction.typed_data())

    assert (message.header, message.body) == (transaction.domain_hash, transaction.message_hash)


def test_typed_data__signed_by_a_wallet__is_the_owners_signature() -> None:
    transaction = of_calls(FIRST, SECOND)
    key = b"\x17" * 32

    signed = Account.sign_typed_data(key, full_message=transaction.typed_data())

    assert bytes(signed.message_hash) == transaction.hash


@given(transactions, transactions)
def test_hash__two_transactions__are_the_same_only_if_every_field_is(
    one: SafeTransaction, other: SafeTransaction
) -> None:
    names = SafeTransaction.__dataclass_fields__
    for name in names:
        mixed = replace(one, **{name: getattr(other, name)})
        assert (mixed.hash == one.hash) == (mixed == one)


def test_of_calls__one_call__is_made_by_the_safe_itself() -> None:
    transaction = of_calls(FIRST)

    assert (transaction.to, transaction.data) == (FIRST.target, FIRST.calldata)
    assert transaction.operation is Operation.CALL
    assert transaction.inner_calls(MULTI_SEND) == (FIRST,)


def test_of_calls__several__are_a_batch_of_multi_send_call_only() -> None:
    transaction = of_calls(FIRST, SECOND)

    assert (transaction.to, transaction.operation) == (MULTI_SEND, Operation.DELEGATECALL)
    assert transaction.data == encode_batch([FIRST, SECOND])
    assert transaction.inner_calls(MULTI_SEND) == (FIRST, SECOND)


@pytest.mark.parametrize("count", [1, 2])
def test_of_calls__any_number__sends_no_value_and_repays_no_gas(count: int) -> None:
    transaction = of_calls(*[FIRST, SECOND][:count])

    assert (transaction.value, transaction.safe_tx_gas, transaction.base_gas) == (0, 0, 0)
    assert (transaction.gas_price, transaction.gas_token) == (0, bytes(20))
    assert transaction.refund_receiver == bytes(20)


def test_of_calls__none__is_refused() -> None:
    with pytest.raises(MalformedData, match="batch: expected at least one call, got none"):
        of_calls()


@pytest.mark.parametrize("calls", [(FIRST,), (FIRST, SECOND)], ids=["call", "batch"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("value", 1),
        ("safe_tx_gas", 1),
        ("base_gas", 1),
        ("gas_price", 1),
        ("gas_token", b"\x01" * 20),
        ("refund_receiver", b"\x01" * 20),
    ],
)
def test_inner_calls__anything_besides_the_calls__is_refused(
    calls: tuple[InnerCall, ...], name: str, value: object
) -> None:
    with pytest.raises(MalformedData) as refused:
        replace(of_calls(*calls), **{name: value}).inner_calls(MULTI_SEND)

    assert refused.value.place == name


def test_inner_calls__delegatecall_of_another_contract__is_refused() -> None:
    transaction = of_calls(FIRST, SECOND)
    foreign = replace(transaction, to=b"\xaa" * 19 + b"\xab")

    with pytest.raises(MalformedData, match="a delegatecall of MultiSendCallOnly 0xaA") as refused:
        foreign.inner_calls(MULTI_SEND)

    assert refused.value.got == to_checksum_address(foreign.to)


def test_inner_calls__delegatecall_of_one_call__is_refused() -> None:
    with pytest.raises(MalformedData, match="expected a delegatecall of MultiSendCallOnly"):
        replace(of_calls(FIRST), operation=Operation.DELEGATECALL).inner_calls(MULTI_SEND)


def test_inner_calls__batch_as_a_plain_call__names_multi_send_as_the_target() -> None:
    transaction = replace(of_calls(FIRST, SECOND), operation=Operation.CALL)

    assert transaction.inner_calls(MULTI_SEND) == (InnerCall(MULTI_SEND, transaction.data),)


@pytest.mark.parametrize("name", ["safe", "to", "gas_token", "refund_receiver"])
@pytest.mark.parametrize("length", [0, 19, 21, 32])
def test_transaction__address_of_another_length__is_refused(name: str, length: int) -> None:
    with pytest.raises(MalformedData, match=f"expected 20 bytes, got {length} bytes") as refused:
        replace(of_calls(FIRST), **{name: bytes(length)})

    assert refused.value.place == name


@pytest.mark.parametrize(
    "name", ["chain_id", "value", "safe_tx_gas", "base_gas", "gas_price", "nonce"]
)
@pytest.mark.parametrize("number", [-1, 2**256])
def test_transaction__number_that_is_no_uint256__is_refused(name: str, number: int) -> None:
    with pytest.raises(MalformedData, match=f"expected a uint256, got {number}") as refused:
        replace(of_calls(FIRST), **{name: number})

    assert refused.value.place == name


@pytest.mark.parametrize("operation", [-1, 2, 256])
def test_transaction__operation_that_no_safe_has__is_refused(operation: int) -> None:
    with pytest.raises(MalformedData, match=f"expected operation 0 or 1, got {operation}"):
        replace(of_calls(FIRST), operation=operation)


def test_safe__what_an_offline_signer_imports__opens_no_way_to_a_network() -> None:
    network = ("web3", "requests", "chainkit.chain")
    program = (
        "import sys\n"
        "from chainkit.council.safe import SafeTransaction, check_signatures, find_execution\n"
        f"print([name for name in {network!r} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")
