"""The hash of the AuthenticatedData that an MLS message authenticates."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.authenticated_data import AadBinding, aad_binding, aad_hash
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.publish_rules.client_envelope import parse_client_envelope
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason
from chainkit.protocol.strict import check_strict
from chainkit.signatures import keccak256
from support import mls, publishes

COMMITTED = (mls.APPLICATION, mls.COMMIT)


def aad_bytes(seen: dict[int, int]) -> bytes:
    """The AuthenticatedData of a group message, as protobuf writes it."""
    kind = publishes.TopicKind.GROUP_MESSAGE
    return publishes.addressed(kind, publishes.GROUP_ID, seen).aad.SerializeToString()


def bound(content_type: int, authenticated: bytes, seen: dict[int, int]) -> bytes:
    """A group message that authenticates what it is told to."""
    group_id = publishes.GROUP_ID
    message = mls.private_message(group_id, content_type, authenticated_data=authenticated)
    return publishes.group_message(message, seen=seen)


@pytest.mark.parametrize("content_type", COMMITTED)
def test_binding__hash_of_the_aad__is_bound(content_type: int) -> None:
    client = bound(content_type, keccak256(aad_bytes({100: 7})), {100: 7})

    assert aad_binding(parse_client_envelope(client)) is AadBinding.BOUND


@pytest.mark.parametrize("content_type", COMMITTED)
def test_binding__cursor_was_changed__is_broken(content_type: int) -> None:
    client = bound(content_type, keccak256(aad_bytes({100: 7})), {100: 6})

    assert aad_binding(parse_client_envelope(client)) is AadBinding.BROKEN


@pytest.mark.parametrize(
    "client",
    [
        bound(mls.APPLICATION, b"", {}),
        publishes.welcome(),
        publishes.key_package(),
        publishes.identity_update(),
    ],
)
def test_binding__nothing_is_authenticated__is_absent(client: bytes) -> None:
    assert aad_binding(parse_client_envelope(client)) is AadBinding.ABSENT


def test_binding__a_second_aad_is_appended__is_refused() -> None:
    # Libraries merge the two: the cursor that is read is not the one that was hashed.
    client = bound(mls.APPLICATION, keccak256(aad_bytes({100: 7})), {100: 7})
    second = b"\x0a\x06\x1a\x04\x0a\x02\x08\x01"

    with pytest.raises(PublishRefused, match=r"ClientEnvelope\.aad: .* a second value") as caught:
        parse_client_envelope(client + second)

    assert caught.value.reason is RefusalReason.NOT_STRICT


def test_hash__no_aad__is_refused() -> None:
    with pytest.raises(MalformedEnvelope, match="expected an aad"):
        aad_hash(b"")


@given(st.binary(max_size=64))
def test_hash__any_bytes__gives_a_hash_or_is_refused(data: bytes) -> None:
    with suppress(MalformedEnvelope):
        check_strict(data, envelopes_pb2.ClientEnvelope)
        assert len(aad_hash(data)) == 32
