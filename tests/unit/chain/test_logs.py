from typing import Any

import pytest

from chainkit.chain import LogFilter
from chainkit.errors import InconsistentAnswer, RefusedRequest
from chainkit.types import BlockHeader, Log
from support.endpoints.endpoint_answers import damaged, hex0x
from support.endpoints.fake_endpoint import NAME, FakeProvider, FakeServer, RpcError

ADDRESS = b"\x11" * 20
OTHER_ADDRESS = b"\x22" * 20
TOPIC = b"\x33" * 32
ARGUMENT = b"\x55" * 32


def log(number: int = 7, index: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "address": hex0x(ADDRESS),
        "topics": [hex0x(TOPIC)],
        "data": "0xabcd",
        "blockNumber": hex(number),
        "blockHash": hex0x(bytes([number]) * 32),
        "transactionHash": "0x" + "44" * 32,
        "transactionIndex": "0x2",
        "logIndex": hex(index),
        "removed": False,
    } | changes


def logs_of(*answers: Any) -> list[Log]:
    return FakeProvider({"eth_getLogs": list(answers)}).endpoint().logs(5, 8, [ADDRESS])


@pytest.mark.conforms("2.2.3-1", "2.2.4-1")
def test_read_logs__of_a_range__come_typed_and_in_chain_order() -> None:
    logs = logs_of(log(8, 0), log(7, 3, removed=None), log(7, 1), log(5, 9))

    assert [(each.block_number, each.log_index) for each in logs] == [
        (5, 9),
        (7, 1),
        (7, 3),
        (8, 0),
    ]
    assert logs[1] == Log(
        address=ADDRESS,
        topics=(TOPIC,),
        data=b"\xab\xcd",
        block_number=7,
        block_hash=b"\x07" * 32,
        transaction_hash=b"\x44" * 32,
        transaction_index=2,
        log_index=1,
    )


def test_read_logs__with_and_without_topics__asks_for_exactly_that() -> None:
    provider = FakeProvider({"eth_getLogs": []})

    provider.endpoint().logs(5, 18, [ADDRESS, OTHER_ADDRESS])
    provider.endpoint().logs(5, 18, [ADDRESS], [TOPIC, bytes(32)])

    query = {"fromBlock": "0x5", "toBlock": "0x12"}
    assert provider.requests == [
        [("eth_getLogs", [query | {"address": [hex0x(ADDRESS), hex0x(OTHER_ADDRESS)]}])],
        [
            (
                "eth_getLogs",
                [
                    query
                    | {
                        "address": [hex0x(ADDRESS)],
                        "topics": [[hex0x(TOPIC), hex0x(bytes(32))]],
                    }
                ],
            )
        ],
    ]


def test_read_logs__with_an_argument__asks_for_exactly_that() -> None:
    provider = FakeProvider({"eth_getLogs": []})

    provider.endpoint().logs(5, 18, [ADDRESS], (), ARGUMENT)
    provider.endpoint().logs(5, 18, [ADDRESS], [TOPIC], ARGUMENT)

    topics = [call[0][1][0]["topics"] for call in provider.requests]
    assert topics == [[None, [hex0x(ARGUMENT)]], [[hex0x(TOPIC)], [hex0x(ARGUMENT)]]]


@pytest.mark.parametrize(
    ("topics", "is_taken"),
    [
        ((TOPIC, ARGUMENT), True),
        ((TOPIC, ARGUMENT, TOPIC), True),
        ((TOPIC, TOPIC, ARGUMENT), False),
        ((TOPIC,), False),
        ((), False),
    ],
)
def test_log_filter__with_an_argument__takes_logs_that_begin_with_it(
    topics: tuple[bytes, ...], is_taken: bool
) -> None:
    assert LogFilter((ADDRESS,), (), ARGUMENT).takes(ADDRESS, topics) is is_taken


@pytest.mark.parametrize("number", [0, 4, 9, 2**64])
def test_read_logs__one_outside_the_range__is_inconsistent(number: int) -> None:
    answer = log() | {"blockNumber": hex(number)}

    with pytest.raises(InconsistentAnswer) as caught:
        logs_of(log(5), answer)

    assert str(caught.value) == (
        f"log at {NAME}: expected a block from 5 to 8, got block {number}, log 0"
    )


def test_read_logs__one_of_another_contract__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match=f"a contract asked for, got 0x{'22' * 20}"):
        logs_of(log(5), log(7, address=hex0x(OTHER_ADDRESS)))


def test_read_logs__one_taken_back__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="removed true at block 7, log 3"):
        logs_of(log(5), log(7, 3, removed=True))


def test_read_logs__one_twice__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        logs_of(log(7, 3), log(6), log(7, 3, data="0x"))

    assert str(caught.value) == (
        f"logs of blocks 5 to 8 at {NAME}: expected each log once, got two at block 7, log 3"
    )


@pytest.mark.parametrize("answer", damaged(log(), "removed"))
def test_read_logs__one_malformed__is_inconsistent(answer: dict[str, Any]) -> None:
    with pytest.raises(InconsistentAnswer, match=r"^logs of blocks 5 to 8 at .*well-formed fields"):
        logs_of(log(5), answer)


@pytest.mark.parametrize("field", ["logIndex", "transactionIndex"])
def test_read_logs__negative_position__is_inconsistent(field: str) -> None:
    with pytest.raises(InconsistentAnswer):
        logs_of(log(7, **{field: "-0x1"}))


@pytest.mark.parametrize("answer", [None, 7, "text", {"logs": []}, ["text"], [None]], ids=repr)
def test_read_logs__no_list_of_logs__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match="expected well-formed fields"):
        FakeProvider({"eth_getLogs": answer}).endpoint().logs(5, 8, [ADDRESS])


def test_read_logs__range_refused__is_retryable_because_a_replica_may_lag() -> None:
    provider = FakeProvider({"eth_getLogs": RpcError(-32602, "block range above head")})

    with pytest.raises(InconsistentAnswer) as caught:
        provider.endpoint().logs(5, 8, [ADDRESS])

    assert str(caught.value) == (
        f"logs of blocks 5 to 8 at {NAME}: expected logs, got block range above head"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_read_logs__refused_by_http__is_not_retryable(status: int) -> None:
    server = FakeServer((status, {}, b"no such key"))

    with pytest.raises(RefusedRequest, match=f"expected HTTP 200, got HTTP {status}"):
        server.endpoint().logs(5, 8, [ADDRESS])


# ------------------------------------------------------------------ logs and calls at once

HEADERS = [BlockHeader(number, bytes([number]) * 32, bytes(32), 1) for number in (6, 7)]
CALLS = [(OTHER_ADDRESS, b"\1\2\3\4"), (ADDRESS, b"\5\6\7\x08")]


def test_read_logs_and_results__of_two_blocks__is_one_request_pinned_to_the_last() -> None:
    provider = FakeProvider(
        {
            "eth_getLogs": lambda query: [log(int(query["blockHash"][2:4], 16))],
            "eth_call": lambda call, block: "0xbb" + call["data"][2:],
        }
    )

    logs, results = provider.endpoint().logs_and_results(HEADERS, LogFilter((ADDRESS,)), CALLS)

    assert [each.block_number for each in logs] == [6, 7]
    assert results == [b"\xbb\1\2\3\4", b"\xbb\5\6\7\x08"]
    [[*_, (method, (call, block))]] = provider.requests
    assert (method, call) == ("eth_call", {"to": hex0x(ADDRESS), "data": "0x05060708"})
    assert block == {"blockHash": "0x" + "07" * 32, "requireCanonical": True}


def test_read_logs_and_results__call_refused__is_refused_as_a_whole() -> None:
    provider = FakeProvider({"eth_getLogs": [], "eth_call": RpcError(-32000, "header not found")})

    with pytest.raises(RefusedRequest, match=r"^eth_call at .*header not found"):
        provider.endpoint().logs_and_results(HEADERS, LogFilter((ADDRESS,)), CALLS)


@pytest.mark.parametrize("result", [None, 7, "0x6", []], ids=repr)
def test_read_logs_and_results__malformed_result__is_inconsistent(result: Any) -> None:
    provider = FakeProvider({"eth_getLogs": [], "eth_call": result})

    with pytest.raises(InconsistentAnswer, match=r"^eth_call at .*expected well-formed fields"):
        provider.endpoint().logs_and_results(HEADERS, LogFilter((ADDRESS,)), CALLS)
