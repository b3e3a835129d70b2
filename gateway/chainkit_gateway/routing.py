"""Routes a ClientEnvelope to the chain or to a node, by topic and payload (XIP-49 §3.1.2).

The rules that need only the envelope's bytes are checked here, before anything is paid for: a
payload that no node would serve costs as much as any other. Each node checks the envelope again.
"""

from __future__ import annotations

from chainkit.protocol.publish_rules.client_envelope import Destination, parse_client_envelope
from chainkit.protocol.publish_rules.judgement import check_published_length
from chainkit.signatures import keccak256
from chainkit_gateway.types import Publication


def route(client_envelope: bytes, client: str) -> Publication:
    """Return an envelope with its route. Raises PublishRefused where the envelope breaks a rule."""
    check_published_length(client_envelope)
    parsed = parse_client_envelope(client_envelope)
    return Publication(
        digest=keccak256(client_envelope),
        client_envelope=client_envelope,
        kind=parsed.kind,
        identifier=parsed.identifier,
        is_for_chain=parsed.destination is Destination.CHAIN,
        client=client,
    )
