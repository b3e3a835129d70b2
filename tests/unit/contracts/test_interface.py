"""Calls, results and errors by the shipped ABI."""

import eth_abi
import pytest

from chainkit.contracts.interface import render, render_call, shipped_interface
from chainkit.errors import InconsistentAnswer, MalformedData, MalformedLog, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.text.printable import printable
from chainkit.types import Log
from support.council.fake_registry import HOLDER, OWNER_ADDRESS, hexed, selector

REGISTRY = shipped_interface("NodeRegistry")
NODE_UPDATED = keccak256(b"NodeUpdated(uint256,(bytes,string,bool))")


def refused(data: object, message: str = "execution reverted") -> RefusedRequest:
    error = RefusedRequest("eth_call", "a result", message)
    error.data = data  # type: ignore[assignment]
    return error


def log(topics: tuple[bytes, ...], data: bytes) -> Log:
    return Log(bytes(20), topics, data, 5, bytes(32), bytes(32), 0, 1)


def test_encode__a_call__equals_selector_and_arguments() -> None:
    expected = selector("updateHealth(uint256,bool)") + hexed(["uint256", "bool"], 100, True)[2:]

    assert "0x" + REGISTRY.encode("updateHealth", 100, True).hex() == expected


@pytest.mark.parametrize("text", ["https://a.example/\udcff", "\ud800"], ids=["a byte", "half"])
def test_encode__text_that_is_no_utf_8__is_refused(text: str) -> None:
    with pytest.raises(MalformedData, match="arguments of addNode: expected text in UTF-8"):
        REGISTRY.encode("addNode", HOLDER, b"\x04key", text)


def test_arguments__calldata_of_add_node__are_named() -> None:
    calldata = REGISTRY.encode("addNode", HOLDER, b"\x04key", "https://a.example")

    assert REGISTRY.arguments("addNode", calldata) == {
        "to": HOLDER,
        "signingKeyPub": b"\x04key",
        "httpAddress": "https://a.example",
    }


@pytest.mark.parametrize(
    "calldata",
    [b"", b"\x01\x02\x03\x04", REGISTRY.encode("addNode", HOLDER, b"key", "url")[:40]],
    ids=["empty", "another function", "cut"],
)
def test_arguments__foreign_or_cut_calldata__are_refused(calldata: bytes) -> None:
    with pytest.raises(MalformedData, match="calldata of"):
        REGISTRY.arguments("addNode", calldata)


def test_result__bytes_of_no_such_type__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match=r"owner of NodeRegistry: expected \(address\)"):
        REGISTRY.result("owner", b"\xff" * 32)


def test_result__string_that_is_no_utf_8__keeps_its_bytes() -> None:
    data = eth_abi.encode(["(bytes,bytes,bool)"], [(b"key", b"http://\xff\xfe", True)])

    ((_, http_address, _),) = REGISTRY.result("getNode", data)

    assert http_address.encode("utf-8", "surrogateescape") == b"http://\xff\xfe"
    assert printable(http_address) == "http://\\udcff\\udcfe"


def test_event__node_updated__is_named() -> None:
    data = eth_abi.encode(["uint256", "(bytes,string,bool)"], [100, (b"key", "url", True)])

    assert REGISTRY.event("NodeUpdated", log((NODE_UPDATED,), data)) == {
        "nodeId": 100,
        "node": {"signingKeyPub": b"key", "httpAddress": "url", "isHealthy": True},
    }


def test_event__another_topic_or_indexed__is_none() -> None:
    assert REGISTRY.event("NodeUpdated", log((bytes(32),), b"")) is None
    assert REGISTRY.event("NodeUpdated", log((NODE_UPDATED, bytes(32)), b"")) is None


def test_event__data_cut__is_malformed() -> None:
    with pytest.raises(MalformedLog, match=r"block 5, log 1"):
        REGISTRY.event("NodeUpdated", log((NODE_UPDATED,), b"\x01"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            selector("OwnableUnauthorizedAccount(address)") + hexed(["address"], OWNER_ADDRESS)[2:],
            f"OwnableUnauthorizedAccount(account={OWNER_ADDRESS})",
        ),
        (selector("EmptyHttpAddress()"), "EmptyHttpAddress()"),
        (
            selector("Error(string)") + hexed(["string"], "no \x1b[2J")[2:],
            'Error(message="no \\x1b[2J")',
        ),
        (selector("Panic(uint256)") + hexed(["uint256"], 17)[2:], "Panic(code=17)"),
        (selector("EmptyHttpAddress()")[:8], f"revert data {selector('EmptyHttpAddress()')[:8]}"),
        (selector("SigningKeyAlreadyUsed(uint256)"), "revert data 0x"),
        (None, "out of \\x1b gas"),
        ("no hex", "out of \\x1b gas"),
        ({"data": "0x"}, "out of \\x1b gas"),
    ],
)
def test_revert_words__each_form__names_error_and_arguments(data: object, words: str) -> None:
    said = REGISTRY.revert_words(refused(data, "out of \x1b gas"))

    assert said.startswith(words)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://node.example", "https://node.example"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\r\nb\tc\x7f", "a\\x0d\\x0ab\\x09c\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egro.elpmaxe", "\\u202egro.elpmaxe"),
        ("ex\u0430mple", "ex\\u0430mple"),
        ("\\x1b", "\\\\x1b"),
        ("\U0001f600", "\\U0001f600"),
    ],
)
def test_printable__what_a_terminal_may_misread__is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_render__each_type__fits_one_line() -> None:
    assert render(b"\x01\x02") == "0x0102"
    assert render(True) == "true"
    assert render(2**255) == str(2**255)
    assert render(HOLDER) == HOLDER
    assert render("a\nb") == '"a\\x0ab"'
    assert render_call("f", {"a": 1, "b": {"c": False}}) == "f(a=1, b={c: false})"
