from typing import Any

import eth_abi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.safe import InnerCall, decode_batch, encode_batch
from chainkit.errors import MalformedData
from support.council.safe_eth_py import safe_eth_py
from support.council.safes import calls
from support.vectors import case_name, from_hex, load

CASES = load("safe")["batches"]
SELECTOR = bytes.fromhex("8d80ff0a")
FIRST, SECOND = InnerCall(b"\x01" * 20, b"first"), InnerCall(b"\x02" * 20, b"second")


def packed(
    target: bytes = FIRST.target,
    calldata: bytes = FIRST.calldata,
    operation: int = 0,
    value: int = 0,
    length: int | None = None,
) -> bytes:
    size = len(calldata) if length is None else length
    return bytes([operation]) + target + value.to_bytes(32) + size.to_bytes(32) + calldata


def multi_send(transactions: bytes) -> bytes:
    return SELECTOR + eth_abi.encode(["bytes"], [transactions])


def calls_of(case: dict[str, Any]) -> tuple[InnerCall, ...]:
    return tuple(
        InnerCall(from_hex(call["target"]), from_hex(call["calldata"])) for call in case["calls"]
    )


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_encode__calls_of_a_vector__gives_what_ethers_packs(case: dict[str, Any]) -> None:
    assert encode_batch(calls_of(case)) == from_hex(case["calldata"])
    assert decode_batch(from_hex(case["calldata"])) == calls_of(case)


@given(st.lists(calls, min_size=1, max_size=5))
def test_decode__any_batch__gives_its_calls_as_safe_eth_py_does(batch: list[InnerCall]) -> None:
    calldata = encode_batch(batch)

    assert decode_batch(calldata) == tuple(batch)
    theirs = safe_eth_py().MultiSend.from_transaction_data(calldata)
    assert [(bytes.fromhex(one.to[2:]), bytes(one.data)) for one in theirs] == [
        (call.target, call.calldata) for call in batch
    ]
    assert {(one.operation.value, one.value) for one in theirs} == {(0, 0)}


@given(st.lists(calls, min_size=1, max_size=3), st.data())
def test_decode__one_byte_changed__is_other_calls_or_refused(
    batch: list[InnerCall], data: st.DataObject
) -> None:
    calldata = bytearray(encode_batch(batch))
    place = data.draw(st.integers(0, len(calldata) - 1))
    calldata[place] ^= data.draw(st.integers(1, 255))

    try:
        found = decode_batch(bytes(calldata))
    except MalformedData:
        return
    assert found != tuple(batch)


def test_multi_send__as_written_here__is_what_the_decoder_takes() -> None:
    assert decode_batch(multi_send(packed())) == (FIRST,)


def test_decode__second_call_is_a_delegatecall__is_refused() -> None:
    calldata = multi_send(packed() + packed(operation=1))

    with pytest.raises(MalformedData, match=r"operation 0, a call, got operation 1 \(call 2\)"):
        decode_batch(calldata)


@pytest.mark.parametrize("operation", [1, 2, 255])
def test_decode__operation_that_is_no_call__is_refused(operation: int) -> None:
    with pytest.raises(MalformedData, match=f"got operation {operation}"):
        decode_batch(multi_send(packed(operation=operation)))


@pytest.mark.parametrize("value", [1, 2**255])
def test_decode__call_with_value__is_refused(value: int) -> None:
    with pytest.raises(MalformedData, match=f"a call without value, got {value} wei"):
        decode_batch(multi_send(packed(value=value)))


def test_decode__zero_target__is_refused() -> None:
    # To MultiSendCallOnly 1.5.0 it means the Safe itself.
    with pytest.raises(MalformedData, match="20 bytes, not all zero"):
        decode_batch(multi_send(packed(target=bytes(20))))


def test_encode__zero_target__is_refused() -> None:
    with pytest.raises(MalformedData, match="20 bytes, not all zero"):
        InnerCall(bytes(20), b"call")


@pytest.mark.parametrize("length", [0, 19, 21])
def test_inner_call__target_of_another_length__is_refused(length: int) -> None:
    with pytest.raises(MalformedData, match="20 bytes"):
        InnerCall(b"\x01" * length, b"call")


@pytest.mark.parametrize("length", [1, 84])
def test_decode__head_of_a_call_cut_off__is_refused(length: int) -> None:
    with pytest.raises(MalformedData, match=rf"at least 85 bytes, got {length} \(call 2\)"):
        decode_batch(multi_send(packed() + packed()[:length]))


def test_decode__calldata_of_a_call_cut_off__is_refused() -> None:
    with pytest.raises(MalformedData, match="6 bytes of calldata, got 5"):
        decode_batch(multi_send(packed(length=6)))


def test_decode__length_past_any_memory__is_refused() -> None:
    with pytest.raises(MalformedData, match="bytes of calldata, got 5"):
        decode_batch(multi_send(packed(length=2**256 - 1)))


def test_decode__length_that_hides_the_next_call__gives_one_call() -> None:
    both = packed() + packed(SECOND.target, SECOND.calldata)
    swallowed = packed(length=len(both) - 85) + packed(SECOND.target, SECOND.calldata)

    (only,) = decode_batch(multi_send(swallowed))

    assert only.calldata == both[85:]


def test_decode__no_call__is_refused() -> None:
    with pytest.raises(MalformedData, match="at least one call, got none"):
        decode_batch(multi_send(b""))


def test_decode__bytes_behind_the_batch__are_refused() -> None:
    with pytest.raises(MalformedData, match="encoded otherwise"):
        decode_batch(multi_send(packed()) + bytes(32))


def test_decode__padding_that_is_not_zero__is_refused() -> None:
    calldata = multi_send(packed())
    assert calldata[-1] == 0

    with pytest.raises(MalformedData, match="encoded otherwise"):
        decode_batch(calldata[:-1] + b"\x01")


def test_decode__offset_to_another_place__is_refused() -> None:
    # Solidity follows it, and would run what a reader of the usual place does not see.
    shown, hidden = packed(), packed(SECOND.target, SECOND.calldata)
    tail = eth_abi.encode(["bytes"], [shown])[32:]
    calldata = SELECTOR + (32 + len(tail)).to_bytes(32) + tail
    calldata += eth_abi.encode(["bytes"], [hidden])[32:]

    with pytest.raises(MalformedData, match="encoded otherwise"):
        decode_batch(calldata)


@pytest.mark.parametrize("selector", [b"", b"\x8d\x80\xff", b"\x8d\x80\xff\x0b"])
def test_decode__another_function__is_refused(selector: bytes) -> None:
    with pytest.raises(MalformedData, match="multiSend"):
        decode_batch(selector + multi_send(packed())[4:])


def test_decode__calldata_cut_off__is_refused() -> None:
    calldata = multi_send(packed() + packed())

    for length in range(len(calldata)):
        with pytest.raises(MalformedData):
            decode_batch(calldata[:length])
