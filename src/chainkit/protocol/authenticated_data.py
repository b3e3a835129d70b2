"""A ClientEnvelope's AuthenticatedData, and the hash of it that its author authenticates (§3.3.2).

Nodes read target, topic and cursor of a ClientEnvelope, and only the group's members can check
whether the author wrote them. The author puts a hash of the AuthenticatedData's bytes into the
``authenticated_data`` of the MLS message, on messages and on commits. XIP-49 leaves the hash open;
here it is keccak256. Today's clients put nothing there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.publish_rules.client_envelope import ParsedClientEnvelope
from chainkit.protocol.strict import field_bytes
from chainkit.signatures import keccak256

AAD_FIELD: Final = 1
"""``ClientEnvelope.aad``."""


class AadBinding(StrEnum):
    """Whether an MLS message authenticates the AuthenticatedData around it (XIP-49 §3.3.4)."""

    BOUND = "bound"
    """The message authenticates it, once decrypted: MLS authenticates its own header."""
    ABSENT = "absent"
    """The message authenticates nothing, or has no MLS header, as welcomes have none."""
    BROKEN = "broken"
    """The message authenticates other data: somebody changed the data around it."""


def aad_hash(client_envelope: bytes) -> bytes:
    """Return keccak256 of the AuthenticatedData's bytes in a ClientEnvelope, as they came.

    The envelope must be strict. Raises MalformedEnvelope where it has no AuthenticatedData.
    """
    data = field_bytes(client_envelope, AAD_FIELD)
    if data is None:
        raise MalformedEnvelope("client envelope", "an aad", "none")
    return keccak256(data)


def aad_binding(client: ParsedClientEnvelope) -> AadBinding:
    """Return whether the MLS message of a ClientEnvelope authenticates its AuthenticatedData."""
    if client.header is None or not client.header.authenticated_data:
        return AadBinding.ABSENT
    is_bound = client.header.authenticated_data == aad_hash(client.client_envelope)
    return AadBinding.BOUND if is_bound else AadBinding.BROKEN
