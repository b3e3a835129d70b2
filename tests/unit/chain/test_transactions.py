from typing import Any

import pytest

from chainkit.chain.transactions import fetch_input
from chainkit.errors import InconsistentAnswer, RefusedRequest
from chainkit.signatures import keccak256
from support.endpoints.endpoint_answers import hex0x
from support.endpoints.fake_endpoint import FakeProvider, RpcError

RAW = [b"first transaction", b"second transaction"]
HASHES = [keccak256(raw) for raw in RAW]


def test_read_raw_transactions__known_and_unknown__come_in_the_order_asked() -> None:
    known = {hex0x(HASHES[0]): hex0x(RAW[0]), hex0x(HASHES[1]): hex0x(RAW[1])}
    unknown = {hex0x(bytes(32)): None, hex0x(b"\1" * 32): "0x"}
    provider = FakeProvider({"eth_getRawTransactionByHash": lambda each: (known | unknown)[each]})

    raw = provider.endpoint().raw_transactions([HASHES[1], bytes(32), HASHES[0], b"\1" * 32])

    assert raw == [RAW[1], None, RAW[0], None]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("answer", [hex0x(RAW[1]), "0xzz", 7, 1e300, {}], ids=repr)
def test_read_raw_transactions__one_of_another_hash__is_inconsistent(answer: Any) -> None:
    provider = FakeProvider({"eth_getRawTransactionByHash": answer})

    with pytest.raises(InconsistentAnswer, match=rf"^raw transaction {hex0x(HASHES[0])} at "):
        provider.endpoint().raw_transactions([HASHES[0]])


@pytest.mark.parametrize("code", [-32601, -32004])
def test_read_raw_transactions__method_not_offered__is_refused(code: int) -> None:
    provider = FakeProvider({"eth_getRawTransactionByHash": RpcError(code, "no such method")})

    with pytest.raises(RefusedRequest, match="no such method"):
        provider.endpoint().raw_transactions([HASHES[0]])


@pytest.mark.parametrize("answer", [None, {"hash": "0x1"}], ids=repr)
def test_read_transaction__known_or_not__is_as_given(answer: Any) -> None:
    provider = FakeProvider({"eth_getTransactionByHash": answer})

    assert provider.endpoint().transaction(HASHES[0]) == answer


@pytest.mark.parametrize("answer", [[], "text", 7], ids=repr)
def test_read_transaction__no_object__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=f"got {type(answer).__name__}"):
        FakeProvider({"eth_getTransactionByHash": answer}).endpoint().transaction(HASHES[0])


@pytest.mark.parametrize("name", ["input", "data"])
def test_fetch_input__under_either_name__is_the_calldata(name: str) -> None:
    provider = FakeProvider({"eth_getTransactionByHash": {name: "0x1234"}})

    assert fetch_input(provider.endpoint(), HASHES[0]) == b"\x12\x34"


def test_read_receipt__of_a_transaction__is_the_object_given() -> None:
    receipt = {"status": "0x1"}

    assert (
        FakeProvider({"eth_getTransactionReceipt": receipt}).endpoint().receipt(HASHES[0])
        == receipt
    )


@pytest.mark.parametrize("answer", [[], "text", 7], ids=repr)
def test_read_receipt__no_object__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=f"got {type(answer).__name__}"):
        FakeProvider({"eth_getTransactionReceipt": answer}).endpoint().receipt(HASHES[0])
