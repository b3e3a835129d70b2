"""Payloads of a group as its members, and strangers, put them onto the network."""

from __future__ import annotations

import json
from typing import Any

from chainkit.protocol.mls.message import parse_message_header
from chainkit.signatures import keccak256
from chainkit_client.groups.building import client_envelope
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.groups.session import Session
from chainkit_client.intents.arguments import KeyUpdate
from chainkit_client.storage.schema import (
    PayloadStatus,
)
from support import mls
from support.client.group_network import (
    GROUP_ID,
    Device,
)
from support.client.toy_engine import framed

ADDRESS = b"\x12\x11\0" + GROUP_ID
"""An AuthenticatedData with the group's topic."""


def statuses(outcomes: list[Outcome]) -> list[PayloadStatus]:
    return [each.status for each in outcomes]


def put_commit(device: Device) -> bytes:
    """Let a device publish a key update, and return the ClientEnvelope."""
    device.groups.queue(GROUP_ID, KeyUpdate())
    device.advance()
    return device.network.published[-1].client_envelope


def put_message(device: Device, content: bytes = b"words") -> bytes:
    device.groups.send(GROUP_ID, content, device.now_ns)
    device.advance()
    return device.network.published[-1].client_envelope


def garbage(epoch: int, content_type: int = mls.COMMIT) -> bytes:
    """Bytes that claim to be of an epoch."""
    return client_envelope(
        b"\x12\x11\0" + GROUP_ID, mls.private_message(GROUP_ID, content_type, epoch, b"")
    )


def secret_of(device: Device) -> tuple[int, str]:
    """Epoch and secret of a toy state."""
    with device.store.reading() as connection:
        state = Session.load(connection, device.groups._tools, GROUP_ID).state
    number, secret, _ = json.loads(state)[3][0]
    return number, secret


def forged(device: Device, plaintext: bytes, leaf: int = 0, key: int = 77) -> bytes:
    """A message that a member could have written with any plaintext."""
    epoch, secret = secret_of(device)
    content: dict[str, Any] = {"leaf": leaf, "key": key, "plaintext": plaintext.hex()}
    message = framed(GROUP_ID, epoch, secret, mls.APPLICATION, content, keccak256(ADDRESS))
    return client_envelope(ADDRESS, message)


def statuses_of(device: Device) -> list[PayloadStatus]:
    return [each.status for each in device.groups.results(GROUP_ID)]


def mls_header(payload: Payload) -> bytes:
    return parse_message_header(payload.message).authenticated_data
