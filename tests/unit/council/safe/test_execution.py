from dataclasses import replace
from typing import Any

import eth_abi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.safe import Operation, SafeTransaction, find_execution, parse_exec_calldata
from chainkit.errors import MalformedData, MalformedLog
from chainkit.signatures import keccak256
from chainkit.types import Log
from support.council.safes import transactions
from support.vectors import case_name, from_hex, load

CASES = load("safe")["transactions"]
SAFE = b"\x05" * 20
HASH, OTHER_HASH = b"\x0a" * 32, b"\x0b" * 32
SUCCESS = keccak256(b"ExecutionSuccess(bytes32,uint256)")
FAILURE = keccak256(b"ExecutionFailure(bytes32,uint256)")
TYPES = ["address", "uint256", "bytes", "uint8", *["uint256"] * 3, "address", "address", "bytes"]


def event(
    topic: bytes = SUCCESS, hash_: bytes = HASH, address: bytes = SAFE, place: int = 0
) -> Log:
    return Log(address, (topic, hash_), bytes(32), 7, bytes(32), bytes(32), 0, place)


def exec_calldata(operation: int = 0, tail: bytes = b"") -> bytes:
    nobody = bytes(20)
    values = [b"\x01" * 20, 0, b"data", operation, 0, 0, 0, nobody, nobody, b"signatures"]
    return bytes.fromhex("6a761202") + eth_abi.encode(TYPES, values) + tail


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_parse__calldata_of_a_vector__gives_hash_and_signatures(case: dict[str, Any]) -> None:
    execution = parse_exec_calldata(from_hex(case["execCalldata"]))

    transaction = execution.of(
        chain_id=case["chainId"], safe=from_hex(case["safe"]), nonce=int(case["nonce"])
    )
    assert transaction.hash == from_hex(case["hash"])
    assert execution.signatures == from_hex(case["packed"])


@given(transactions, st.binary(max_size=200))
def test_parse__what_was_made_of_any_transaction__gives_it_back(
    transaction: SafeTransaction, signatures: bytes
) -> None:
    execution = parse_exec_calldata(transaction.exec_calldata(signatures))

    assert execution.signatures == signatures
    fields = {"chain_id": transaction.chain_id, "safe": transaction.safe}
    assert execution.of(**fields, nonce=transaction.nonce) == transaction
    other = (transaction.nonce + 1) % 2**256
    assert execution.of(**fields, nonce=other) == replace(transaction, nonce=other)


def test_parse__bytes_behind_the_arguments__executes_the_same() -> None:
    assert parse_exec_calldata(exec_calldata(tail=b"tail")) == parse_exec_calldata(exec_calldata())


@pytest.mark.parametrize("operation", list(Operation))
def test_parse__operation__is_what_the_safe_does(operation: Operation) -> None:
    assert parse_exec_calldata(exec_calldata(operation)).operation is operation


def test_parse__operation_that_no_safe_has__is_refused() -> None:
    with pytest.raises(MalformedData, match="operation 0 or 1, got 2"):
        parse_exec_calldata(exec_calldata(2))


def test_parse__another_function__is_refused() -> None:
    with pytest.raises(MalformedData, match="expected execTransaction 0x6a761202"):
        parse_exec_calldata(b"\x6a\x76\x12\x03" + exec_calldata()[4:])


def test_parse__calldata_cut_off__is_refused() -> None:
    calldata = exec_calldata()
    for length in range(4, len(calldata) - 31, 31):
        with pytest.raises(MalformedData, match="calldata of execTransaction"):
            parse_exec_calldata(calldata[:length])


@pytest.mark.parametrize(("topic", "outcome"), [(SUCCESS, "success"), (FAILURE, "failure")])
def test_find__event_of_the_safe_and_hash__tells_the_outcome(topic: bytes, outcome: str) -> None:
    logs = [event(hash_=OTHER_HASH), event(topic, place=1)]

    assert find_execution(logs, SAFE, HASH) == outcome


def test_find__no_logs__says_nothing() -> None:
    assert find_execution([], SAFE, HASH) is None


def test_find__success_of_another_hash__says_nothing() -> None:
    assert find_execution([event(hash_=OTHER_HASH)], SAFE, HASH) is None


def test_find__success_that_another_contract_claims__says_nothing() -> None:
    assert find_execution([event(address=b"\x06" * 20)], SAFE, HASH) is None


def test_find__other_events_of_the_safe__say_nothing() -> None:
    approval = event()._replace(
        topics=(keccak256(b"ApproveHash(bytes32,address)"), HASH, bytes(32)), data=b""
    )
    logs = [approval, event(keccak256(b"Unknown(bytes32,uint256)")), event()._replace(topics=())]

    assert find_execution(logs, SAFE, HASH) is None


def test_find__another_contracts_malformed_event__is_not_read() -> None:
    foreign = event(address=b"\x06" * 20)._replace(data=b"")

    assert find_execution([foreign, event()], SAFE, HASH) == "success"


@pytest.mark.parametrize("second", [SUCCESS, FAILURE])
def test_find__outcome_told_twice__is_refused(second: bytes) -> None:
    with pytest.raises(MalformedLog, match=r"one event of the Safe, got another \(block 7, log 3"):
        find_execution([event(), event(second, place=3)], SAFE, HASH)


def test_find__hash_among_the_data_as_before_1_4_1__is_refused() -> None:
    unindexed = event()._replace(topics=(SUCCESS,), data=HASH + bytes(32))

    with pytest.raises(MalformedLog, match="2 topics of ExecutionSuccess"):
        find_execution([unindexed], SAFE, HASH)
