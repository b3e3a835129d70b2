"""Calldata that posts payloads to our contracts and to public ones, and their refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_abi import encode

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.posting import PostingRefusal, posting_calldata, posting_refusal
from chainkit.errors import MalformedData, RefusedRequest
from chainkit.protocol.payload_contract import EventLayout, PayloadContract
from chainkit.signatures import keccak256
from chainkit.types import TopicKind

OWN = PayloadContract("GroupMessages", bytes(20), 0, TopicKind.GROUP_MESSAGE)
PUBLIC = replace(OWN, name="GroupMessageBroadcaster", layout=EventLayout(16, True, True))
UPDATES = replace(OWN, name="IdentityUpdateBroadcaster", kind=TopicKind.IDENTITY_UPDATE)
GROUP = b"\x11" * 16


def refused(signature: str, *arguments: int) -> RefusedRequest:
    error = RefusedRequest("chain", "a result", "execution reverted")
    words = encode(["uint256"] * len(arguments), arguments)
    error.data = "0x" + (keccak256(signature.encode())[:4] + words).hex()
    return error


def test_calldata__of_our_contract__is_that_of_its_abi() -> None:
    wanted = shipped_interface("GroupMessages").encode("addMessage", GROUP + bytes(16), b"text")

    assert posting_calldata(OWN, GROUP, b"text") == wanted


def test_calldata__of_a_public_contract__names_the_group_by_16_bytes() -> None:
    data = posting_calldata(PUBLIC, GROUP[:15], b"text")

    assert data[:4] == keccak256(b"addMessage(bytes16,bytes)")[:4]
    assert data[4:] == encode(["bytes16", "bytes"], [GROUP[:15] + b"\0", b"text"])


def test_calldata__identity_update__is_the_same_for_both() -> None:
    data = posting_calldata(UPDATES, b"\x22" * 32, b"update")

    own = shipped_interface("IdentityUpdates").encode("addIdentityUpdate", b"\x22" * 32, b"update")
    assert data == own


def test_calldata__group_id_has_no_room__is_refused() -> None:
    with pytest.raises(MalformedData, match="GroupMessageBroadcaster: expected at most 16 bytes"):
        posting_calldata(PUBLIC, b"\x11" * 32, b"text")


@pytest.mark.parametrize(
    ("signature", "arguments", "words", "is_for_good"),
    [
        ("Paused()", (), "Paused()", False),
        ("EnforcedPause()", (), "EnforcedPause()", False),
        (
            "InvalidPayloadSize(uint256,uint256,uint256)",
            (9, 1, 8),
            "InvalidPayloadSize(actualSize=9, minSize=1, maxSize=8)",
            True,
        ),
        (
            "PayloadSizeOutOfBounds(uint256,uint256,uint256)",
            (9, 1, 8),
            "PayloadSizeOutOfBounds(size=9, minimum=1, maximum=8)",
            True,
        ),
    ],
)
def test_refusal__error_of_ours_or_of_a_public_contract__is_told_in_words(
    signature: str, arguments: tuple[int, ...], words: str, is_for_good: bool
) -> None:
    found = posting_refusal(PUBLIC, refused(signature, *arguments))

    assert found == PostingRefusal(words, is_for_good)


def test_refusal__unknown_error__is_told_in_hex() -> None:
    error = refused("Other()")

    assert posting_refusal(PUBLIC, error) == PostingRefusal(f"revert data {error.data}", False)
