from __future__ import annotations

from typing import Any

import pytest

from chainkit.council.simulation.trace import (
    METHOD,
    AccountChange,
    Message,
    RawDifference,
    parse_difference,
    state_overrides,
    trace_difference,
)
from chainkit.errors import (
    ChainkitError,
    EndpointUnavailable,
    InconsistentAnswer,
    NoTracing,
)
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference
from support.endpoints.fake_endpoint import FakeProvider, FakeServer, RpcError

SENDER, CONTRACT, OTHER = (bytes([number]) * 20 for number in (0x11, 0x22, 0x33))
BLOCK = BlockReference(16, b"\xbb" * 32)
MESSAGE = Message(SENDER, CONTRACT, b"\x12\x34")
SLOT = "0x" + "00" * 31 + "07"
ONE, TWO = (f"0x{number:064x}" for number in (1, 2))


def answer(pre: dict[str, Any], post: dict[str, Any]) -> dict[str, Any]:
    return {"pre": {hex0x(CONTRACT): pre}, "post": {hex0x(CONTRACT): post}}


def block(hash_: bytes = BLOCK.hash) -> dict[str, str]:
    return {
        "number": hex(BLOCK.number),
        "hash": hex0x(hash_),
        "parentHash": hex0x(bytes(32)),
        "timestamp": "0x1",
    }


def traced(tracer: Any, **answers: Any) -> RawDifference:
    endpoint = FakeProvider({METHOD: tracer, "eth_getBlockByNumber": block(), **answers}).endpoint()
    return trace_difference(endpoint, BLOCK, MESSAGE, {})


def error_of(tracer: Any, **answers: Any) -> ChainkitError:
    with pytest.raises(ChainkitError) as caught:
        traced(tracer, **answers)
    return caught.value


CHANGED = answer({"storage": {SLOT: ONE}}, {"storage": {SLOT: TWO}})


def test_trace__block_and_overrides__are_sent_as_endpoints_want_them() -> None:
    provider = FakeProvider({METHOD: CHANGED})

    trace_difference(provider.endpoint(), BLOCK, MESSAGE, {(CONTRACT, 7): 2})

    ((method, sent),) = provider.requests[0]
    assert method == METHOD
    assert list(sent) == [
        {"from": hex0x(SENDER), "to": hex0x(CONTRACT), "data": "0x1234"},
        {"blockHash": hex0x(BLOCK.hash), "requireCanonical": True},
        {
            "tracer": "prestateTracer",
            "tracerConfig": {"diffMode": True},
            "stateOverrides": {hex0x(CONTRACT): {"stateDiff": {SLOT: TWO}}},
        },
    ]


@pytest.mark.parametrize(
    ("pre", "post", "change"),
    [
        ({SLOT: ONE}, {SLOT: TWO}, (1, 2)),
        ({SLOT: ONE}, {}, (1, 0)),
        ({}, {SLOT: TWO}, (0, 2)),
        ({"0x7": "0x1"}, {"0x7": "0x2"}, (1, 2)),
    ],
)
def test_trace__slot_that_changes__is_told_before_and_after(
    pre: dict[str, str], post: dict[str, str], change: tuple[int, int]
) -> None:
    found = traced(answer({"storage": pre}, {"storage": post}))

    assert found.storage == {(CONTRACT, 7): change}


@pytest.mark.parametrize(
    ("pre", "post"),
    [({}, {}), ({"storage": {SLOT: ONE}}, {"storage": {SLOT: ONE}}), ({"storage": None}, {})],
)
def test_trace__slot_that_stays__is_left_out(pre: dict[str, Any], post: dict[str, Any]) -> None:
    assert traced(answer(pre, post)) == RawDifference()


@pytest.mark.parametrize("after", [2, "0x2"], ids=["geth", "hex"])
def test_trace__account_changes__are_told_with_what_was_before(after: object) -> None:
    pre = {"balance": "0x5", "nonce": 1, "code": "0x"}
    post = {"balance": "0x4", "nonce": after, "code": "0x6001"}

    found = traced(answer(pre, post))

    assert found.accounts == {
        AccountChange(CONTRACT, "balance", 5, 4),
        AccountChange(CONTRACT, "nonce", 1, 2),
        AccountChange(CONTRACT, "code", b"", b"\x60\x01"),
    }


def test_trace__account_that_was_not_there__changes_from_nothing() -> None:
    found = traced({"pre": {}, "post": {hex0x(OTHER): {"nonce": 1, "code": "0x60"}}})

    assert found.accounts == {
        AccountChange(OTHER, "nonce", 0, 1),
        AccountChange(OTHER, "code", b"", b"\x60"),
    }


def test_trace__what_pre_alone_tells_of_an_account__has_not_changed() -> None:
    found = traced(answer({"balance": "0x5", "nonce": 1, "code": "0x60"}, {"nonce": 1}))

    assert found.accounts == frozenset()


def test_trace__account_that_ends__is_told_with_its_slots() -> None:
    pre = {hex0x(CONTRACT): {"balance": "0x5", "storage": {SLOT: ONE}}}

    found = traced({"pre": pre, "post": {}})

    assert found.accounts == {AccountChange(CONTRACT, "existence", True, False)}
    assert found.storage == {(CONTRACT, 7): (1, 0)}


@pytest.mark.parametrize(
    "refusal",
    [
        RpcError(-32601, "the method debug_traceCall does not exist/is not available"),
        RpcError(-32600, "debug_traceCall is not available on the Free tier"),
        RpcError(-32612, "custom traces are not enabled for this endpoint"),
        RpcError(-32000, "tracing needs an archive plan"),
        RpcError(-32603, "failed to evaluate JS code: ReferenceError: prestateTracer"),
    ],
)
def test_trace__endpoint_refuses_it_in_any_way__has_no_tracing(refusal: RpcError) -> None:
    error = error_of(refusal)

    assert isinstance(error, NoTracing)
    assert error.got == refusal.message


@pytest.mark.parametrize("status", [400, 401, 403])
def test_trace__http_refuses_it__has_no_tracing(status: int) -> None:
    refused = (status, {}, b"")
    header = (200, {}, lambda calls: [{"jsonrpc": "2.0", "id": calls[0]["id"], "result": block()}])
    endpoint = FakeServer(refused, header, refused).endpoint()

    with pytest.raises(NoTracing, match=f"HTTP {status}"):
        trace_difference(endpoint, BLOCK, MESSAGE, {})


@pytest.mark.parametrize(
    "answered",
    [
        None,
        [],
        "0x",
        {"gas": 5, "failed": False, "structLogs": []},
        {hex0x(CONTRACT): {"balance": "0x5"}},
        {"pre": {}},
    ],
    ids=repr,
)
def test_trace__answer_is_no_difference__has_no_tracing(answered: object) -> None:
    error = error_of(answered)

    assert isinstance(error, NoTracing)
    assert error.got == "an answer that is no difference"


@pytest.mark.parametrize(
    "answered",
    [
        {"pre": [], "post": {}},
        {"pre": {"0x12": {}}, "post": {}},
        answer({}, {"storage": {SLOT: "0x" + "11" * 33}}),
        answer({}, {"storage": {"7": ONE}}),
        answer({}, {"nonce": None}),
        answer({}, {"nonce": "two"}),
        answer({}, {"code": "60"}),
    ],
    ids=repr,
)
def test_trace__malformed_difference__is_inconsistent(answered: object) -> None:
    assert isinstance(error_of(answered), InconsistentAnswer)


def by_number_only(call: object, place: object, options: object) -> object:
    return CHANGED if place == hex(BLOCK.number) else RpcError(-32602, "invalid argument 1")


def test_trace__endpoint_takes_heights_only__is_traced_with_the_hash_looked_at_twice() -> None:
    asked: list[object] = []

    def header(number: str, full: bool) -> Any:
        asked.append(number)
        return block()

    found = traced(by_number_only, eth_getBlockByNumber=header)

    assert found.storage == {(CONTRACT, 7): (1, 2)}
    assert asked == [hex(BLOCK.number)] * 2


@pytest.mark.parametrize("changed_at", [1, 2], ids=["before", "meanwhile"])
def test_trace__another_block_at_the_height__is_inconsistent(changed_at: int) -> None:
    asked = iter(range(1, 10))

    def header(number: str, full: bool) -> Any:
        return block(BLOCK.hash if next(asked) < changed_at else b"\xcc" * 32)

    error = error_of(by_number_only, eth_getBlockByNumber=header)

    assert isinstance(error, InconsistentAnswer)
    assert (error.expected, error.got) == (hex0x(BLOCK.hash), "0x" + "cc" * 32)


def test_trace__endpoint_that_is_gone__is_no_lack_of_tracing() -> None:
    endpoint = FakeServer(*[(503, {}, b"")] * 4).endpoint()

    with pytest.raises(EndpointUnavailable, match="HTTP 503"):
        trace_difference(endpoint, BLOCK, MESSAGE, {})


def test_trace__gone_once_it_is_asked_by_height__is_no_lack_of_tracing() -> None:
    header = (200, {}, lambda calls: [{"jsonrpc": "2.0", "id": calls[0]["id"], "result": block()}])
    responses = [(403, {}, b""), header, *[(503, {}, b"")] * 4]
    endpoint = FakeServer(*responses).endpoint()

    with pytest.raises(EndpointUnavailable, match="HTTP 503"):
        trace_difference(endpoint, BLOCK, MESSAGE, {})


def test_no_tracing__words_of_an_endpoint__are_printable() -> None:
    error = error_of(RpcError(-32601, "no\x1b[2J"))

    assert r"no\x1b[2J" in str(error)


def test_then__slot_changed_twice__is_told_from_first_to_last() -> None:
    first = RawDifference({(CONTRACT, 1): (1, 2), (CONTRACT, 2): (5, 0)})
    later = RawDifference({(CONTRACT, 1): (2, 3), (CONTRACT, 2): (0, 5), (OTHER, 1): (0, 9)})

    assert first.then(later).storage == {(CONTRACT, 1): (1, 3), (OTHER, 1): (0, 9)}


def test_then__accounts_of_both__are_kept() -> None:
    changes = [AccountChange(address, "nonce", 0, 1) for address in (CONTRACT, OTHER)]
    first, later = (RawDifference({}, frozenset({change})) for change in changes)

    assert first.then(later).accounts == set(changes)


def test_words__slots_of_several_accounts__become_overrides_of_each() -> None:
    raw = RawDifference({(CONTRACT, 7): (1, 2), (CONTRACT, 8): (1, 0), (OTHER, 7): (0, 1)})

    assert state_overrides(raw.words) == {
        hex0x(CONTRACT): {"stateDiff": {SLOT: TWO, f"0x{8:064x}": f"0x{0:064x}"}},
        hex0x(OTHER): {"stateDiff": {SLOT: ONE}},
    }


def test_parse__answer_of_anvil__is_all_that_it_says() -> None:
    found = parse_difference(
        {
            "pre": {
                hex0x(SENDER): {"balance": "0x21e19df6b4d44253bd2", "nonce": 1},
                hex0x(CONTRACT): {"balance": "0x0", "code": "0x60", "storage": {SLOT: ONE}},
            },
            "post": {hex0x(SENDER): {"nonce": 2}, hex0x(CONTRACT): {}},
        }
    )

    assert found.storage == {(CONTRACT, 7): (1, 0)}
    assert found.accounts == {AccountChange(SENDER, "nonce", 1, 2)}
