"""Applies a payload of a group's topic in a session: all changes are one transaction (R25).

Payloads come in the causal order, payloads of the chain in the chain's order (R6). The first valid
commit of the current epoch ends the epoch (R8); a commit of another epoch is refused by its header
(R5). A failed payload may succeed later: its epoch is ahead, or a reorg changes the epoch's
history. So the payload is stored until its epoch is final, and tried again after each change (R26).
"""

from __future__ import annotations

from dataclasses import replace

from chainkit.errors import MalformedData
from chainkit.protocol.mls.message import ContentType, MessageHeader
from chainkit_client.groups.commits import receive_commit
from chainkit_client.groups.messages import receive_message
from chainkit_client.groups.opening import Refused, Waiting, read_header
from chainkit_client.groups.page import Page
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.groups.results import may_succeed, tried_with
from chainkit_client.groups.session import Session
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import PayloadStatus


def receive(
    session: Session, payload: Payload, page: Page, topic: bytes | None = None
) -> tuple[Outcome, PayloadResult]:
    """Receive the next payload, and record the result, under ``topic`` where one is given.

    Raises EngineFailed where the engine did not answer: nothing is recorded then.
    """
    header: MessageHeader | None = None
    status, reason = PayloadStatus.SUCCEEDED, ""
    outcome = Outcome(payload.place, status)
    try:
        header = read_header(session, payload)
        outcome = _receive(session, payload, header, page)
    except Waiting as error:
        status, reason = PayloadStatus.WAITING, str(error)
    except (Refused, MalformedData) as error:
        status, reason = PayloadStatus.FAILED, str(error)
    result = PayloadResult(
        topic or session.topic,
        payload.originator_id,
        payload.sequence_id,
        payload.originator_ns,
        payload.payload_hash,
        status,
        reason,
        epoch=None if header is None else min(header.epoch, 2**63 - 1),
        sender_data=header.sender_data if header and status is PayloadStatus.SUCCEEDED else None,
    )
    if (
        status is not PayloadStatus.SUCCEEDED
        and header is not None
        and topic is None
        and may_succeed(session, header)
    ):
        result = replace(
            result,
            tried_with=tried_with(session, header),
            message=payload.message,
            aad_hash=payload.aad_hash,
            warning=payload.warning,
            expires_at=payload.expires_at,
        )
    session.record_result(result)
    return replace(outcome, status=status, reason=reason), result


def refuse(session: Session, payload: Payload, reason: str) -> Outcome:
    """Record a payload that cannot be applied any more, and change nothing else."""
    status = PayloadStatus.FAILED
    place = payload.place
    session.record_result(
        PayloadResult(
            session.topic, *place, payload.originator_ns, payload.payload_hash, status, reason
        )
    )
    return Outcome(place, status, reason)


def _receive(session: Session, payload: Payload, header: MessageHeader, page: Page) -> Outcome:
    if header.content_type is ContentType.COMMIT:
        return receive_commit(session, payload, header, page)
    if header.content_type is ContentType.APPLICATION:
        return receive_message(session, payload, header, page)
    raise Refused("a proposal on its own is discarded")
