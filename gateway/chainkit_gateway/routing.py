"""Where a ClientEnvelope goes: to the chain or to a node, by its topic and payload (XIP-49 §3.1.2).

The rules that need nothing but its bytes are checked here, before anything is paid for: a payload
that no node would serve costs as much as any other. Each node judges it again.
"""

from __future__ import annotations

from chainkit.protocol.publish_rules.client_envelope import Destination, parse_client_envelope
from chainkit.signatures import keccak256
from chainkit_gateway.types import Publication


def route(client_envelope: bytes, client: str) -> Publication:
    """Return a client's envelope with its way. Raises PublishRefused where it breaks a rule."""
    parsed = parse_client_envelope(client_envelope)
    return Publication(
        digest=keccak256(client_envelope),
        client_envelope=client_envelope,
        kind=parsed.kind,
        identifier=parsed.identifier,
        is_for_chain=parsed.destination is Destination.CHAIN,
        client=client,
    )
