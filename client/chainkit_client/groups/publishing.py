"""Drives intents over a given network: builds, sends, looks up, invites.

One ``advance`` is one pass over a group. The caller syncs the group's topic before and after
``advance``, and calls ``advance`` again while intents wait. A pass may end at any await: a payload
that was sent is found again by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final, Protocol

from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import Groups, OutgoingWelcome
from chainkit_client.groups.revoked import queue_removal
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member
from chainkit_client.storage.schema import IntentState

_TO_DO: Final = (IntentState.PUBLISHED, IntentState.TO_SEND)


class PublishOutcome(Enum):
    """The answer to a publish."""

    TAKEN = "taken"
    UNKNOWN = "unknown"
    """No answer, or one that says nothing (503): the network may hold it."""
    NOT_TAKEN = "not taken"
    """The node is busy or away: the node stored nothing, and the same bytes may be sent again."""
    CONFLICT = "conflict"
    """The payload's cursor and the node's do not fit (409), and the node stored nothing: read on,
    and publish again."""
    REFUSED = "refused"
    """The payload breaks a rule: another one is needed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome, and words for people."""

    outcome: PublishOutcome
    reason: str = ""


class Network(Protocol):
    """The network as intents use it; each call may raise the network's errors."""

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        """Return an AuthenticatedData for a new payload: target, topic and the applied ids."""

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the newest key package of each installation that offers one."""

    async def revoked(self, members: Sequence[Member]) -> frozenset[bytes]:
        """Return the keys of members that their own inboxes revoked, as far as is known now."""

    async def publish(self, outgoing: Outgoing) -> Answer:
        """Send a payload."""

    async def is_absent(self, outgoing: Outgoing) -> bool:
        """Return whether a payload that may have been sent is lost for good.

        True only once the chain is final beyond the time of sending, and the topic does not have
        the payload's hash.
        """

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        """Send a welcome; return whether the network took it."""


async def advance(groups: Groups, network: Network, group_id: bytes, now_ns: int) -> None:
    """Do the next possible step of each intent of a group, in the order of ids.

    Where a commit waits, members that were revoked are removed first. ``now_ns`` is the client's
    clock in nanoseconds since 1970.
    """
    intents = groups.intents(group_id, _TO_DO)
    if any(each.is_commit and each.state is IntentState.TO_SEND for each in intents):
        removal = await queue_removal(groups, network.revoked, group_id)
        intents = [*filter(None, [removal]), *intents]
    for intent in intents:
        if intent.state is IntentState.PUBLISHED:
            await _look_up(groups, network, intent, now_ns)
        elif intent.state is IntentState.TO_SEND:
            await _build_and_send(groups, network, intent, now_ns)
    await _invite(groups, network, group_id)
    groups.follow_up(group_id)


async def _build_and_send(groups: Groups, network: Network, intent: Intent, now_ns: int) -> None:
    needed = groups.needed_key_packages(intent.id)
    offers = await network.fetch_key_packages(needed) if needed else {}
    data = await network.authenticated_data(intent.group_id, intent.is_commit)
    outgoing = groups.build(intent.id, data, offers, now_ns)
    if outgoing is not None:
        await _send(groups, network, outgoing)


async def _look_up(groups: Groups, network: Network, intent: Intent, now_ns: int) -> None:
    """Send a payload's bytes again where the network does not hold the payload; else wait.

    A message that is nowhere although it was sent again is encrypted again.
    """
    outgoing = groups.outgoing(intent.id)
    if outgoing is None:
        return
    if outgoing.sent_at_ns is not None:
        if not await network.is_absent(outgoing):
            return
        if not outgoing.is_commit and outgoing.sent_at_ns > outgoing.built_at_ns:
            groups.build_again(outgoing)
            await _build_and_send(groups, network, intent, now_ns)
            return
    if groups.about_to_send(outgoing, now_ns):
        await _send(groups, network, outgoing)


async def _send(groups: Groups, network: Network, outgoing: Outgoing) -> None:
    answer = await network.publish(outgoing)
    if answer.outcome is PublishOutcome.NOT_TAKEN:
        groups.not_taken(outgoing)
    elif answer.outcome is PublishOutcome.CONFLICT:
        data = await network.authenticated_data(outgoing.group_id, outgoing.is_commit)
        groups.conflicts(outgoing, data)
    elif answer.outcome is PublishOutcome.REFUSED:
        groups.refused(outgoing, answer.reason)


async def _invite(groups: Groups, network: Network, group_id: bytes) -> None:
    for payload_hash, welcomes in groupby(
        groups.welcomes(group_id), key=lambda each: each.payload_hash
    ):
        taken = [await network.send_welcome(each) for each in welcomes]
        if all(taken):
            groups.welcomes_sent(payload_hash)
