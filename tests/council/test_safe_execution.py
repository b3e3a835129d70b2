"""The real contracts of every known release accept the owners' signatures of our hashes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from chainkit.chain.transactions import fetch_input
from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe import (
    InnerCall,
    Operation,
    SafeTransaction,
    check_signatures,
    find_execution,
    pack,
    parse_exec_calldata,
)
from chainkit.council.safe.account import hash_by_contract
from chainkit.errors import InvalidSignature, MalformedData
from support.council.safes import (
    CHAIN_ID,
    COUNTER,
    REFUSER,
    Owner,
    SafeChain,
    SafeOnChain,
    joined,
    owner,
    second_form,
    transactions,
    unpack,
)

COUNT = InnerCall(COUNTER, b"a first word of exactly 32 bytes")
REFUSED = InnerCall(REFUSER, b"no")
INVALID_OWNER = 'Error(message="GS026")'
TOO_SHORT = 'Error(message="GS020")'
STRANGER = owner(99)


@pytest.fixture(scope="module")
def asked_safe(safe_chain: SafeChain, version: str) -> SafeOnChain:
    """One for questions alone."""
    return safe_chain.safe(version, 3, 2)


def signatures_of(transaction: SafeTransaction, *owners: Owner) -> list[tuple[str, bytes]]:
    return [(one.address, one.sign(transaction.hash)) for one in owners]


def refused_by_ours(safe: SafeOnChain, transaction: SafeTransaction, given: list[bytes]) -> str:
    with pytest.raises(InvalidSignature) as refused:
        check_signatures(transaction.hash, safe.read().owners, given)
    return str(refused.value)


@settings(max_examples=150, deadline=None)
@given(transaction=transactions)
def test_hash__any_transaction__equals_that_of_the_contract(
    asked_safe: SafeOnChain, transaction: SafeTransaction
) -> None:
    ours = replace(transaction, safe=asked_safe.address, chain_id=CHAIN_ID)

    assert hash_by_contract(asked_safe.chain.state(), ours) == ours.hash


def test_domain_hash__of_a_safe__equals_the_contracts_domain_separator(
    asked_safe: SafeOnChain,
) -> None:
    separator = asked_safe.chain.state().ask("Safe", asked_safe.address, "domainSeparator")

    assert asked_safe.transaction(COUNT).domain_hash == separator


@pytest.mark.parametrize("singleton", ["Safe", "SafeL2"])
@pytest.mark.parametrize(("count", "threshold"), [(3, 2), (5, 3)])
@pytest.mark.parametrize("calls", [1, 3])
def test_execute__signed_by_as_many_as_needed__calls_and_says_success(
    safe_chain: SafeChain, version: str, singleton: str, count: int, threshold: int, calls: int
) -> None:
    safe = safe_chain.safe(version, count, threshold, singleton)
    before, *_ = safe_chain.counted()
    transaction = safe.transaction(*[COUNT] * calls)
    # The last owners, and each in another kind of signature.
    signers = safe.owners[-threshold:]
    signatures = [
        one.eth_sign(transaction.hash) if index % 2 else one.sign(transaction.hash)
        for index, one in enumerate(signers)
    ]
    checked = check_signatures(transaction.hash, safe.read().owners, signatures)

    receipt = safe.send(transaction.exec_calldata(pack(transaction.hash, signatures)))

    assert len(checked) == threshold
    assert receipt.succeeded
    assert find_execution(receipt.logs, safe.address, transaction.hash) == "success"
    # Only a delegatecall of MultiSendCallOnly leaves the Safe as the sender of each.
    assert safe_chain.counted() == (before + calls, "0x" + safe.address.hex(), COUNT.calldata)
    assert safe.read().nonce == transaction.nonce + 1

    execution = parse_exec_calldata(fetch_input(safe_chain.endpoint, receipt.transaction_hash))
    executed = execution.of(chain_id=CHAIN_ID, safe=safe.address, nonce=transaction.nonce)
    assert executed == transaction
    assert executed.inner_calls(safe.multi_send) == (COUNT,) * calls
    assert check_signatures(executed.hash, checked, unpack(execution.signatures)) == checked


def test_execute__more_signatures_than_needed__is_accepted(safe: SafeOnChain) -> None:
    transaction = safe.transaction(COUNT)
    signatures = [one.sign(transaction.hash) for one in safe.owners]

    receipt = safe.send(transaction.exec_calldata(pack(transaction.hash, signatures)))

    assert find_execution(receipt.logs, safe.address, transaction.hash) == "success"


def test_execute__bytes_behind_the_calldata__reach_the_contract_and_change_nothing_else(
    safe: SafeOnChain,
) -> None:
    transaction = safe.transaction(COUNT, InnerCall(COUNTER, COUNT.calldata + b"grounds"))
    before, *_ = safe.chain.counted()
    signatures = signatures_of(transaction, *safe.owners[:2])

    receipt = safe.send(transaction.exec_calldata(joined(signatures)))

    assert find_execution(receipt.logs, safe.address, transaction.hash) == "success"
    counted, _, word = safe.chain.counted()
    assert (counted, word) == (before + 2, COUNT.calldata)


@pytest.mark.parametrize("calls", [(REFUSED,), (COUNT, REFUSED)], ids=["call", "batch"])
def test_execute__inner_call_that_reverts__changes_nothing(
    safe: SafeOnChain, calls: tuple[InnerCall, ...]
) -> None:
    transaction = safe.transaction(*calls)
    before = safe.chain.counted()
    calldata = transaction.exec_calldata(joined(signatures_of(transaction, *safe.owners[:2])))

    receipt = safe.send(calldata)

    assert not receipt.succeeded
    assert find_execution(receipt.logs, safe.address, transaction.hash) is None
    assert (safe.chain.counted(), safe.read().nonce) == (before, transaction.nonce)


def test_execute__inner_call_that_reverts_with_gas_set_aside__says_failure(
    safe: SafeOnChain,
) -> None:
    # Not one of ours: here the status of the receipt alone would look like success.
    transaction = replace(safe.transaction(REFUSED), safe_tx_gas=100_000)
    calldata = transaction.exec_calldata(joined(signatures_of(transaction, *safe.owners[:2])))

    receipt = safe.send(calldata)

    assert receipt.succeeded
    assert find_execution(receipt.logs, safe.address, transaction.hash) == "failure"


def test_execute__second_time__is_refused_by_the_contract(safe: SafeOnChain) -> None:
    transaction = safe.transaction(COUNT)
    calldata = transaction.exec_calldata(joined(signatures_of(transaction, *safe.owners[:2])))
    assert safe.send(calldata).succeeded

    # Its hash is now made with another nonce, so the signatures recover to strangers.
    assert safe.refusal(calldata) == INVALID_OWNER


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("to", REFUSER),
        ("value", 1),
        ("data", b"other calldata"),
        ("operation", Operation.DELEGATECALL),
        ("safe_tx_gas", 1),
        ("base_gas", 1),
        ("gas_price", 1),
        ("gas_token", COUNTER),
        ("refund_receiver", COUNTER),
        ("nonce", 1),
        ("chain_id", 1),
        ("safe", COUNTER),
    ],
)
def test_execute__one_field_changed_after_signing__is_refused_by_both(
    safe: SafeOnChain, name: str, value: object
) -> None:
    signed = safe.transaction(COUNT)
    signatures = signatures_of(signed, *safe.owners[:2])
    changed = replace(signed, **{name: value})

    refused_by_ours(safe, changed, [signature for _, signature in signatures])

    # Nonce, chain and Safe are not in the calldata: who signed others has signed another hash.
    foreign = signatures_of(changed, *safe.owners[:2])
    if name in ("nonce", "chain_id", "safe"):
        assert safe.refusal(signed.exec_calldata(joined(foreign))) == INVALID_OWNER
    else:
        assert safe.refusal(changed.exec_calldata(joined(signatures))) == INVALID_OWNER


def test_execute__strangers_signature__is_refused_by_both(safe: SafeOnChain) -> None:
    transaction = safe.transaction(COUNT)
    signatures = signatures_of(transaction, safe.owners[0], STRANGER)

    assert safe.refusal(transaction.exec_calldata(joined(signatures))) == INVALID_OWNER
    given = [signature for _, signature in signatures]
    assert STRANGER.address in refused_by_ours(safe, transaction, given)


@pytest.mark.parametrize("second", ["same", "eth_sign", "second form"])
def test_execute__one_owner_twice__is_refused_by_both(safe: SafeOnChain, second: str) -> None:
    transaction, one = safe.transaction(COUNT), safe.owners[0]
    first = one.sign(transaction.hash)
    again = {
        "same": first,
        "eth_sign": one.eth_sign(transaction.hash),
        "second form": second_form(first),
    }[second]

    assert safe.refusal(transaction.exec_calldata(first + again)) == INVALID_OWNER
    words = refused_by_ours(safe, transaction, [first, again])
    assert ("a high S" if second == "second form" else "a second of") in words


def test_execute__high_s__is_refused_by_ours_though_the_contract_takes_it(
    safe: SafeOnChain,
) -> None:
    transaction = safe.transaction(COUNT)
    signatures = signatures_of(transaction, *safe.owners[:2])
    malleated = [(address, second_form(signature)) for address, signature in signatures]

    assert safe.refusal(transaction.exec_calldata(joined(malleated))) is None
    refused_by_ours(safe, transaction, [signature for _, signature in malleated])


def test_execute__descending_order__is_refused_by_the_contract_and_never_packed(
    safe: SafeOnChain,
) -> None:
    transaction = safe.transaction(COUNT)
    ascending = joined(signatures_of(transaction, *safe.owners[:2]))
    descending = ascending[65:] + ascending[:65]

    assert safe.refusal(transaction.exec_calldata(descending)) == INVALID_OWNER
    assert pack(transaction.hash, unpack(descending)) == ascending
    assert safe.refusal(transaction.exec_calldata(ascending)) is None


@pytest.mark.parametrize("signers", [0, 1])
def test_execute__too_few__is_refused_by_the_contract_and_counted_by_ours(
    safe: SafeOnChain, signers: int
) -> None:
    transaction = safe.transaction(COUNT)
    given = [one.sign(transaction.hash) for one in safe.owners[:signers]]

    calldata = transaction.exec_calldata(pack(transaction.hash, given))

    assert safe.refusal(calldata) == TOO_SHORT
    account = safe.read()
    assert len(check_signatures(transaction.hash, account.owners, given)) < account.threshold


def test_execute__hash_approved_by_the_sender__is_refused_by_ours_though_the_contract_takes_it(
    safe_chain: SafeChain, version: str
) -> None:
    # V 1 needs no signature where an owner sends it himself: nothing that can be shown to others.
    safe = safe_chain.safe(version, 1, 1)
    transaction = safe.transaction(COUNT)
    address = bytes.fromhex(safe.owners[0].address[2:])
    keyless = bytes(12) + address + bytes(32) + b"\x01"
    calldata = transaction.exec_calldata(keyless)

    assert safe.refusal(calldata, sender=safe.owners[0].address) is None
    assert safe.refusal(calldata) == 'Error(message="GS025")'
    assert "a hash approved on the chain" in refused_by_ours(safe, transaction, [keyless])


def test_execute__batch_with_a_delegatecall_inside__is_refused_by_the_contract(
    safe: SafeOnChain,
) -> None:
    batch = safe.transaction(COUNT, COUNT)
    data = bytearray(batch.data)
    # Selector, offset and length stand before the first call's operation.
    data[4 + 64] = 1
    transaction = replace(batch, data=bytes(data))
    calldata = transaction.exec_calldata(joined(signatures_of(transaction, *safe.owners[:2])))

    assert safe.refusal(calldata) is not None
    with pytest.raises(MalformedData, match="operation 0, a call, got operation 1"):
        transaction.inner_calls(safe.multi_send)


def test_interface__of_the_safe__names_its_refusals(asked_safe: SafeOnChain) -> None:
    calldata = shipped_interface("Safe").encode("getModulesPaginated", STRANGER.address, 1)

    assert asked_safe.refusal(calldata) == 'Error(message="GS105")'
