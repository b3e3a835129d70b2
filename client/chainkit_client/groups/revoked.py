"""Revoked members leave a group before the next commit of another member (XIP-46)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from chainkit_client.groups.groups import Groups
from chainkit_client.intents.arguments import RemoveMembers
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member
from chainkit_client.storage.schema import IntentState

_OVER: Final = (IntentState.COMMITTED, IntentState.PROCESSED)

FindRevoked = Callable[[Sequence[Member]], Awaitable[frozenset[bytes]]]
"""Returns the keys of members that their own inboxes revoked."""


async def queue_removal(groups: Groups, find: FindRevoked, group_id: bytes) -> Intent | None:
    """Queue the removal of members that were revoked; None where there is none to remove.

    One that a waiting removal names is not named again, nor one whose removal was given up.
    """
    group = groups.group(group_id)
    if group.epoch is None or not group.is_member:
        return None
    view = groups.view(group_id)
    others = [each for each in view.members if each.leaf != view.own_leaf]
    gone = await find(others) - _named(groups.intents(group_id))
    if not gone:
        return None
    intent_id = groups.queue(group_id, RemoveMembers(tuple(sorted(gone))))
    return next(each for each in groups.intents(group_id) if each.id == intent_id)


def _named(intents: Sequence[Intent]) -> frozenset[bytes]:
    return frozenset(
        key
        for each in intents
        if isinstance(each.arguments, RemoveMembers) and each.state not in _OVER
        for key in each.arguments.installations
    )
