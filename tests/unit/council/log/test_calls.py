from dataclasses import replace
from typing import Any

import pytest

from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import Call
from chainkit.council.log.calls import Calls, calls_of
from chainkit.council.proposal import Proposal
from chainkit.council.safe import InnerCall, Operation, SafeTransaction, known_contracts
from support.council.hostile_text import add_node_without_utf_8
from support.council.proposals import PLAIN, RECORD, SAFE, disable, grounds, pause, proposed

STRANGER = b"\x77" * 20


def transaction_of(proposal: Proposal, **changes: Any) -> SafeTransaction:
    transaction = proposal.transaction
    assert isinstance(transaction, SafeTransaction)
    return replace(transaction, **changes)


def read(transaction: SafeTransaction) -> Calls:
    return calls_of(RECORD, SAFE, transaction)


def safe_call(*calls: InnerCall) -> SafeTransaction:
    assert SAFE.safe is not None
    return SafeTransaction.of_calls(
        chain_id=1, safe=SAFE.account, nonce=0, calls=calls, multi_send=SAFE.safe.multi_send
    )


@pytest.mark.parametrize("calls", [(disable(),), (disable(), pause(), disable(500))])
def test_calls__of_a_proposal__are_its_calls_and_its_grounds(calls: Any) -> None:
    found = read(transaction_of(proposed(*calls)))

    assert tuple(each.call for each in found.calls) == calls
    assert found.trailer is not None
    expected = grounds(*calls)
    assert (found.trailer.digest, found.trailer.expires) == (expected.digest, expected.expires)
    assert found.alarm == ""


@pytest.mark.parametrize("version", ["1.4.1", "1.5.0"])
def test_calls__batch_of_any_known_multi_send__is_read(version: str) -> None:
    address = known_contracts()["MultiSendCallOnly", version].address
    transaction = transaction_of(proposed(disable(), pause()), to=address)

    found = read(transaction)

    assert [each.call for each in found.calls] == [disable(), pause()]
    assert found.alarm == ""


def test_calls__batch_by_other_code__is_raw_and_alarms() -> None:
    transaction = transaction_of(proposed(disable(), pause()), to=STRANGER)

    found = read(transaction)

    (raw,) = found.calls
    assert (raw.call, raw.target, raw.data) == (None, STRANGER, transaction.data)
    assert "not MultiSendCallOnly's" in found.alarm


def test_calls__delegatecall_of_our_own_contract__is_no_call_of_it() -> None:
    transaction = transaction_of(proposed(disable()), operation=Operation.DELEGATECALL)

    found = read(transaction)

    assert found.calls[0].call is None
    assert found.alarm


def test_calls__batch_that_does_not_decode__is_raw() -> None:
    transaction = transaction_of(proposed(disable(), pause()))
    cut = replace(transaction, data=transaction.data[:-32])

    (raw,) = read(cut).calls

    assert raw.call is None
    assert raw.remark.startswith("a batch that does not decode")


def test_calls__of_a_stranger__is_raw_with_its_selector() -> None:
    (raw,) = read(safe_call(InnerCall(STRANGER, b"\xde\xad\xbe\xef\x01"))).calls

    assert (raw.call, raw.selector) == (None, b"\xde\xad\xbe\xef")
    assert raw.remark == "no call that a council makes"


def test_calls__function_that_no_council_calls__is_raw() -> None:
    registry = RECORD.node_registry.address
    data = shipped_interface("NodeRegistry").encode("renounceOwnership")

    (raw,) = read(safe_call(InnerCall(registry, data))).calls

    assert raw.call is None
    assert raw.remark.endswith(f"selector 0x{data.hex()}")


def test_calls__with_value__is_raw_and_says_so() -> None:
    (raw,) = read(transaction_of(proposed(disable()), value=7)).calls

    assert (raw.call, raw.value) == (None, 7)
    assert raw.remark.endswith("with 7 wei")


def test_calls__bytes_behind_the_arguments_that_are_no_trailer__are_not_passed_over() -> None:
    call = disable()
    (raw,) = read(safe_call(InnerCall(call.target, call.calldata + b"\x01"))).calls

    assert raw.call is None
    assert "encoded otherwise" in raw.remark


def test_calls__text_that_is_no_utf_8__is_raw() -> None:
    registry = RECORD.node_registry.address

    (raw,) = read(safe_call(InnerCall(registry, add_node_without_utf_8()))).calls

    assert (raw.call, raw.data) == (None, add_node_without_utf_8())
    assert raw.remark == "no call that a council makes: text that is no UTF-8"


def test_calls__two_trailers__are_no_call_of_a_council() -> None:
    call, trailer = disable(), grounds().trailer

    (raw,) = read(safe_call(InnerCall(call.target, call.calldata + trailer + trailer))).calls

    assert raw.call is None


def test_calls__trailer_in_a_call_that_is_not_the_last__is_no_call_of_a_council() -> None:
    first, last = disable(), pause()
    data = first.calldata + grounds().trailer

    found = read(safe_call(InnerCall(first.target, data), InnerCall(last.target, last.calldata)))

    assert [each.call for each in found.calls] == [None, last]
    assert found.trailer is None


def test_calls__arguments_that_end_like_a_trailer__are_never_another_call() -> None:
    # 16 + 48 bytes fill two words: the argument's own end looks like a trailer.
    data = bytes(16) + grounds().trailer
    call = Call.make(RECORD, "GroupMessages", "upgradeToAndCall", "0x" + "66" * 20, data)

    (raw,) = read(safe_call(InnerCall(call.target, call.calldata))).calls

    assert raw.call is None


def test_calls__of_the_safe_itself__are_read_as_such() -> None:
    data = shipped_interface("Safe").encode("changeThreshold", 2)

    (found,) = read(safe_call(InnerCall(SAFE.account, data))).calls

    assert found.call is not None
    assert (found.call.contract, found.call.function) == ("Safe", "changeThreshold")


def test_calls__of_a_plain_account_to_itself__are_no_calls_of_a_safe() -> None:
    data = shipped_interface("Safe").encode("changeThreshold", 2)
    transaction = replace(safe_call(InnerCall(PLAIN.account, data)), safe=PLAIN.account)

    (found,) = calls_of(RECORD, PLAIN, transaction).calls

    assert found.call is None
