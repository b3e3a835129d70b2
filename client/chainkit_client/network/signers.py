"""The registered node that signed an envelope: its originator, or a node that vouches for it."""

from __future__ import annotations

from chainkit.nodes.connection import signer_of
from chainkit_client.reading.verified import Keys


def signing_node(envelope: bytes, keys: Keys) -> int | None:
    """Return the node that signed an OriginatorEnvelope, None where no registered one did."""
    signer = signer_of(envelope)
    return next((node_id for node_id, key in keys.by_node.items() if key == signer), None)
