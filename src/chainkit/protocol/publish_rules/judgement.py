"""Checks one PayerEnvelope for the node that is asked to publish it (XIP-49 §3.3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from chainkit.errors import InvalidSignature, MalformedData, MalformedEnvelope
from chainkit.protocol.mls.key_package import check_key_package
from chainkit.protocol.payer_envelope import (
    MOST_PAID_LENGTH,
    MOST_PUBLISHED_LENGTH,
    ParsedPayerEnvelope,
    is_retention_forged,
    parse_payer_envelope,
    recover_payer,
)
from chainkit.protocol.publish_rules.client_envelope import (
    Destination,
    ParsedClientEnvelope,
    parse_client_envelope,
)
from chainkit.protocol.publish_rules.refusal import (
    PublishRefused,
    RefusalReason,
    refused,
    refused_as_unread,
    refused_because,
)
from chainkit.protocol.retention import (
    DEFAULT_RETENTION_DAYS,
    LEAST_RETENTION_DAYS,
    MAXIMUM_RETENTION_DAYS,
)
from chainkit.protocol.strict import NotStrict
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Cursor, TopicKind

CURSOR_ROOM: Final = 100
"""Entries of a cursor beyond the originators that a node holds: clients may list others with 0."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """The state of a node and of one topic at the moment of a publish."""

    node_id: int
    """In the registry, never 0."""
    cursor: Cursor
    """Highest sequence id that the node holds of each originator, the chain's too."""
    latest_chain_sequence_id: int
    """Sequence id of the newest payload that the chain has on the topic; 0 where it has none."""
    now_ns: int
    """Nanoseconds since 1970."""
    names_ungiven: Mapping[int, int] = field(default_factory=dict)
    """Originator id to its first envelope on the topic that names an id which this node has not
    given yet: a payload that names that envelope would make the two name each other."""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A PayerEnvelope that keeps all rules that need only its bytes."""

    payer_envelope: bytes
    """The bytes as they came."""
    payer_key: bytes
    """65 bytes, recovered from the payer's signature."""
    target_originator: int | None
    """Node id that the payer's signature covers; None where it covers none."""
    retention_days: int | None
    """The payer's wish, from 1 to 365; None where there is none, and where it is forged."""
    client: ParsedClientEnvelope
    is_retention_forged: bool = False
    """Whether the retention is not the default, and has a signature that is not the payer's."""


def check_published_length(client_envelope: bytes) -> None:
    """Check that readers can receive an envelope of this payload. Raises PublishRefused."""
    _check_length("client envelope", client_envelope, MOST_PUBLISHED_LENGTH)


def check_paid_length(payer_envelope: bytes) -> None:
    """Check that readers can receive the envelope that an originator makes of a PayerEnvelope.

    Raises PublishRefused. ``read_publish`` checks no such length: envelopes that other nodes
    accepted are read.
    """
    _check_length("payer envelope", payer_envelope, MOST_PAID_LENGTH)


def read_publish(payer_envelope: bytes) -> PublishRequest:
    """Decode a PayerEnvelope and check all that its bytes alone show (XIP-49 §3.3.4).

    Raises PublishRefused: the payer's signature, the retention, and the reasons of
    ``parse_client_envelope``.
    """
    try:
        payer = parse_payer_envelope(payer_envelope)
    except NotStrict as error:
        raise refused_as_unread(RefusalReason.NOT_A_PAYER_ENVELOPE, error) from error
    except MalformedEnvelope as error:
        raise refused_because(RefusalReason.NOT_A_PAYER_ENVELOPE, error) from error
    try:
        digest = payer.digest()
        payer_key = recover_payer(payer, digest)
    except InvalidSignature as error:
        raise refused_because(RefusalReason.INVALID_PAYER_SIGNATURE, error) from error
    _check_retention(payer)
    client = parse_client_envelope(payer.client_envelope)
    # Nobody gains by the default, which is owed where the days are forged, too.
    is_default = payer.retention_days in (None, DEFAULT_RETENTION_DAYS.get(client.kind))
    is_forged = not is_default and is_retention_forged(payer, digest, payer_key)
    return PublishRequest(
        payer_envelope=payer_envelope,
        payer_key=payer_key,
        target_originator=payer.target_originator,
        retention_days=None if is_forged else payer.retention_days,
        client=client,
        is_retention_forged=is_forged,
    )


def judge_publish(publish: PublishRequest, view: NodeView) -> None:
    """Check the rules of a publish that depend on this node, now (XIP-49 §3.3.4).

    Raises PublishRefused: the target, the cursor, the lifetime and signatures of a key package, and
    a forged retention, which is no fault of an originator: nodes of other makes do not look at it.
    A payload that belongs to the chain is accepted if it names no node; the caller posts it.
    """
    if publish.is_retention_forged:
        expected, got = "the payer's, over the days", "another"
        raise refused(RefusalReason.FORGED_RETENTION, "signature of the retention", expected, got)
    check_target(publish, view.node_id)
    check_position(publish.client, view)
    check_payload(publish.client, view.now_ns)


def check_target(publish: PublishRequest, node_id: int) -> None:
    """Check that payer and client mean this node, or the chain where that is the destination.

    XIP-49's clients name the target in the AAD; today's leave it to the payer. Exactly one of the
    two names it, or both name the same. Raises PublishRefused.
    """
    client, payer = publish.client.target_originator, publish.target_originator
    if None not in (client, payer) and client != payer:
        raise refused(RefusalReason.TARGETS_DIFFER, "target of the payer", client, payer)
    target = client or payer
    if publish.client.destination is Destination.CHAIN:
        if target is not None:
            expected = f"{BLOCKCHAIN_ORIGINATOR_ID}, the chain"
            raise refused(RefusalReason.BELONGS_TO_CHAIN, "target originator", expected, target)
    elif target is None:
        raise refused(RefusalReason.NO_TARGET, "target originator", node_id, "none")
    elif target != node_id:
        raise refused(RefusalReason.ANOTHER_ORIGINATOR, "target originator", node_id, target)


def check_position(client: ParsedClientEnvelope, view: NodeView) -> None:
    """Check that the client has seen no more than the node, and of the topic's commits all.

    A cursor that names many originators more than the node holds is refused: each node would keep
    its entries. A group message must name the latest payload that the chain has on its topic, where
    no entry stands for 0; and so must an identity update that has a cursor. Today's have none. A
    message of today's clients may name an earlier one: they would not send it again (ADR 27).

    Raises PublishRefused, for a conflict with the node's cursor.
    """
    named, most = len(client.last_seen.sequence_ids), len(view.cursor.sequence_ids) + CURSOR_ROOM
    if named > most:
        expected = f"at most {most} originators"
        raise refused(RefusalReason.WIDE_CURSOR, "last_seen", expected, named)
    for originator, sequence_id in client.last_seen.sequence_ids.items():
        if sequence_id > (held := view.cursor[originator]):
            subject, expected = f"last_seen of originator {originator}", f"at most {held}"
            raise _conflict(RefusalReason.DEPENDENCY_AHEAD, subject, expected, sequence_id, view)
        ungiven = view.names_ungiven.get(originator)
        if ungiven is not None and sequence_id >= ungiven:
            subject = f"last_seen of originator {originator}"
            expected = f"less than {ungiven}, which names what this node has not given yet"
            raise _conflict(RefusalReason.DEPENDENCY_AHEAD, subject, expected, sequence_id, view)
    found, expected_id = client.last_seen[BLOCKCHAIN_ORIGINATOR_ID], view.latest_chain_sequence_id
    is_excused = found < expected_id and _may_be_behind(client, found)
    if _must_name_latest(client) and found != expected_id and not is_excused:
        subject = f"last_seen of originator {BLOCKCHAIN_ORIGINATOR_ID}"
        raise _conflict(RefusalReason.BEHIND_CHAIN, subject, expected_id, found, view)


def depends_on_position(client: ParsedClientEnvelope) -> bool:
    """Return whether ``check_position`` looks at the node's cursor or at the topic's commits."""
    return bool(client.last_seen.sequence_ids) or _must_name_latest(client)


def check_payload(client: ParsedClientEnvelope, now_ns: int) -> None:
    """Check the lifetime and the signatures of a key package. Raises PublishRefused."""
    if client.key_package is None:
        return
    try:
        check_key_package(client.key_package, now_ns)
    except MalformedData as error:
        raise refused_because(RefusalReason.INVALID_PAYLOAD, error) from error


def _must_name_latest(client: ParsedClientEnvelope) -> bool:
    has_cursor = bool(client.last_seen.sequence_ids)
    is_update = client.kind is TopicKind.IDENTITY_UPDATE
    return client.kind is TopicKind.GROUP_MESSAGE or (is_update and has_cursor)


def _may_be_behind(client: ParsedClientEnvelope, found: int) -> bool:
    is_message = client.kind is TopicKind.GROUP_MESSAGE
    is_of_today = client.target_originator is None and found > 0
    return is_message and is_of_today and client.destination is Destination.ORIGINATOR


def _conflict(
    reason: RefusalReason, subject: str, expected: object, got: object, view: NodeView
) -> PublishRefused:
    return refused(reason, subject, expected, got, view.cursor)


def _check_length(subject: str, data: bytes, most: int) -> None:
    if len(data) > most:
        expected, got = f"at most {most} bytes", f"{len(data)} bytes"
        raise refused(RefusalReason.TOO_LARGE, subject, expected, got)


def _check_retention(payer: ParsedPayerEnvelope) -> None:
    if payer.retention_days is not None and payer.retention_days > MAXIMUM_RETENTION_DAYS:
        expected = f"{LEAST_RETENTION_DAYS} to {MAXIMUM_RETENTION_DAYS} days"
        raise refused(RefusalReason.INVALID_RETENTION, "retention", expected, payer.retention_days)
