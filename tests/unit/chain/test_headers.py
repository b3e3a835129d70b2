from typing import Any

import pytest

from chainkit.errors import AccessRefused, InconsistentAnswer, WrongChain
from chainkit.types import BlockHeader
from support.endpoints.endpoint_answers import block, chain, damaged
from support.endpoints.fake_endpoint import NAME, FakeServer, RpcError

# ------------------------------------------------------------------ headers


def test_read_head__any_chain__is_its_newest_block() -> None:
    assert chain().endpoint().head() == BlockHeader(9, b"\x09" * 32, b"\x08" * 32, 1_735_689_836)


def test_read_headers__heights_and_a_tag__come_in_the_order_asked() -> None:
    provider = chain()

    headers = provider.endpoint().headers([3, 12, "latest", 0])

    assert [header and header.number for header in headers] == [3, None, 9, 0]
    assert provider.requests[0] == [
        ("eth_getBlockByNumber", [tag, False]) for tag in ("0x3", "0xc", "latest", "0x0")
    ]


def test_read_header__above_the_head__is_inconsistent_or_none() -> None:
    endpoint = chain().endpoint()

    assert endpoint.find_header(10) is None
    with pytest.raises(InconsistentAnswer) as caught:
        endpoint.header(10)
    assert str(caught.value) == f"block 10 at {NAME}: expected a block, got nothing"


def test_read_header__of_another_height__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        chain(eth_getBlockByNumber=block(8)).endpoint().header(7)

    assert str(caught.value) == f"block 7 at {NAME}: expected height 7, got 8"


@pytest.mark.parametrize("answer", [*damaged(block(7)), "text", [], 7])
def test_read_header__malformed__is_inconsistent(answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match=r"^block 7 at .*: expected well-formed fields"):
        chain(eth_getBlockByNumber=answer).endpoint().header(7)


@pytest.mark.parametrize("field", ["hash", "parentHash"])
@pytest.mark.parametrize("value", ["0x" + "07" * 31, "0x" + "07" * 33, "07" * 32])
def test_read_header__hash_of_another_form__is_inconsistent(field: str, value: str) -> None:
    answer = block(7, **{field: value})

    with pytest.raises(InconsistentAnswer, match="expected well-formed fields"):
        chain(eth_getBlockByNumber=answer).endpoint().header(7)


def test_read_header__negative_time__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer):
        chain(eth_getBlockByNumber=block(7, timestamp="-0x1")).endpoint().header(7)


# ------------------------------------------------------------------ heads and tags


def test_read_head_of__the_chain__comes_in_one_request() -> None:
    provider = chain()

    assert provider.endpoint().head_of(31337).number == 9
    assert provider.requests == [[("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])]]


def test_read_head_of__another_chain__says_both() -> None:
    with pytest.raises(WrongChain) as caught:
        chain(eth_chainId="0x1").endpoint().head_of(31337)

    assert str(caught.value) == f"chain id at {NAME}: expected 31337, got 1"


@pytest.mark.parametrize("method", ["eth_chainId", "eth_getBlockByNumber"])
def test_read_head_of__malformed__is_inconsistent(method: str) -> None:
    with pytest.raises(InconsistentAnswer, match="well-formed fields"):
        chain(**{method: None}).endpoint().head_of(31337)


@pytest.mark.parametrize("tag", ["safe", "finalized"])
def test_read_tagged_header__of_a_chain_that_has_it__is_it(tag: Any) -> None:
    provider = chain(eth_getBlockByNumber=lambda asked, full: block(4 if asked == tag else 9))

    header = provider.endpoint().tagged_header(tag)

    assert header is not None and header.number == 4


@pytest.mark.parametrize(
    "answer",
    [
        None,
        RpcError(-39001, "Unknown block"),
        RpcError(-32000, "safe block not found"),
        RpcError(-32602, "invalid block tag"),
        RpcError(-32601, "no such method"),
    ],
    ids=repr,
)
def test_read_tagged_header__no_such_tag_or_block__is_none(answer: Any) -> None:
    assert chain(eth_getBlockByNumber=answer).endpoint().tagged_header("safe") is None


def test_read_tagged_header__no_access__is_no_missing_tag() -> None:
    with pytest.raises(AccessRefused):
        FakeServer((401, {}, b"")).endpoint().tagged_header("safe")
