"""Drives intents over a network that is handed in: builds, sends, looks up, invites.

One ``advance`` is one pass over a group. The caller syncs the group's topic before and after it,
and calls it again while intents wait. It may be ended at any await: what was sent is found again by
its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final, Protocol

from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import Groups, OutgoingWelcome
from chainkit_client.intents.rows import Intent
from chainkit_client.storage.schema import IntentState

_TO_DO: Final = (IntentState.PUBLISHED, IntentState.TO_SEND)


class Verdict(Enum):
    """The answer to a publish."""

    TAKEN = "taken"
    UNKNOWN = "unknown"
    """No answer, or one that says nothing (503): the network may hold it."""
    NOT_TAKEN = "not taken"
    """A node lacks what the payload depends on (409), or is busy: it holds nothing, and the same
    bytes may be sent again."""
    REFUSED = "refused"
    """The payload breaks a rule: another one is needed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, and words for people."""

    verdict: Verdict
    reason: str = ""


class Network(Protocol):
    """The questions of a group; each call may raise the network's own errors."""

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        """Return an AuthenticatedData for a payload of now: target, topic and what was applied."""

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the newest key packages, by installation; those that nobody offers are missing."""

    async def publish(self, outgoing: Outgoing) -> Answer:
        """Send a payload."""

    async def is_absent(self, outgoing: Outgoing) -> bool:
        """Tell whether a payload that may have been sent is nowhere, and for good.

        True only once all that was sent before is final: the topic was searched for its hash.
        """

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        """Send a welcome; return whether it was taken."""


async def advance(groups: Groups, network: Network, group_id: bytes, now_ns: int) -> None:
    """Do for each intent of a group what can be done now, in the order of their ids.

    ``now_ns`` is the client's clock in nanoseconds since 1970.
    """
    for intent in groups.intents(group_id, _TO_DO):
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
    """Send the same bytes again where the network does not hold them; else wait."""
    outgoing = groups.outgoing(intent.id)
    if outgoing is None:
        return
    if outgoing.sent_at_ns is not None and not await network.is_absent(outgoing):
        return
    if groups.about_to_send(outgoing, now_ns):
        await _send(groups, network, outgoing)


async def _send(groups: Groups, network: Network, outgoing: Outgoing) -> None:
    answer = await network.publish(outgoing)
    if answer.verdict is Verdict.NOT_TAKEN:
        groups.not_taken(outgoing)
    elif answer.verdict is Verdict.REFUSED:
        groups.refused(outgoing, answer.reason)


async def _invite(groups: Groups, network: Network, group_id: bytes) -> None:
    for payload_hash, welcomes in groupby(
        groups.welcomes(group_id), key=lambda each: each.payload_hash
    ):
        taken = [await network.send_welcome(each) for each in welcomes]
        if all(taken):
            groups.welcomes_sent(payload_hash)
