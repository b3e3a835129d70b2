"""Groups, members, messages and intents as lines for people, and as JSON for scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from chainkit.terminal.tables import columns
from chainkit.text.counting import counted
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.cli.names import NAME, short
from chainkit_client.groups.overview import Group
from chainkit_client.groups.transcript import KIND_NAMES, Message
from chainkit_client.intents.machine import UNFINISHED
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member
from chainkit_client.storage.evidence import KeptBreach
from chainkit_client.storage.imported_schema import Standing
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import (
    DeliveryStatus,
    MembershipState,
    MessageKind,
)

_INBOX: Final = re.compile("[0-9a-f]{64}")
EXPIRED: Final = "expired: nodes need not have it any more"
GONE: Final = "ask another device of yours for its history"
STANDINGS: Final = {
    None: "not checked",
    Standing.PROVEN: "the network has its envelope",
    Standing.EXPIRED: "too old to check",
    Standing.INVENTED: "NO NODE HAS IT",
    Standing.DISPUTED: "DISPUTED",
    Standing.PLACELESS: "never published",
}
"""How nodes and chain judge what another device sent."""
NOT_PROVED: Final = "nobody has proved that the sender is who it says"


def shown_text(text: str) -> str:
    """Return a stranger's text on one line, with terminal controls escaped and letters kept."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def shown_account(account: str, is_proved: bool, own_account: str) -> str:
    """Return "you", or the beginning of an inbox id; a name that is not proved has a mark."""
    is_inbox = _INBOX.fullmatch(account) is not None
    if is_proved and is_inbox:
        return "you" if account == own_account else account[:NAME]
    return f"?{account[:NAME] if is_inbox else shown_text(account)[:16]}"


def text_of(message: Message) -> str:
    """Return the words of a message."""
    return message.content.decode("utf-8", "backslashreplace")


def message_line(message: Message, own_account: str, now_ns: int) -> str:
    """Return a message as a line: id, time, sender and words; ``now_ns`` is since 1970."""
    when = time_of(message.time_ns)
    by = shown_account(message.sender_account, message.is_proved, own_account)
    match message.kind:
        case MessageKind.APPLICATION:
            said = shown_text(text_of(message))
        case MessageKind.MEMBER_ADDED:
            said = f"* added {_changed(message, own_account)}"
        case MessageKind.MEMBER_REMOVED:
            said = f"* removed {_changed(message, own_account)}"
        case MessageKind.UNREADABLE:
            said = "* a message that cannot be read"
        case MessageKind.LEFT_BEHIND:
            said = "* a commit that cannot be followed"
    notes = [] if message.is_proved else [NOT_PROVED]
    if message.imported_from:
        device = message.imported_from.hex()[:NAME]
        notes.append(f"from device {device}, {STANDINGS[message.standing]}")
    notes += [shown_text(message.warning)] if message.warning else []
    if message.is_dated_apart:
        notes.append(f"its sender says {time_of(message.sent_at_ns)}")
    if message.has_expired(now_ns):
        notes.append(EXPIRED)
    if message.delivery is DeliveryStatus.UNPUBLISHED:
        notes.append("waits")
    if message.delivery is DeliveryStatus.FAILED:
        notes.append("not sent")
    note = f"  ({'; '.join(notes)})" if notes else ""
    return f"{short(message.id)}  {when}  {by:<{NAME}}  {said}{note}"


def gap_line(count: int) -> str:
    """Return that payloads of a group expired before this client had them."""
    payloads = counted(count, "payload")
    return f"{payloads} of this group expired before this client had them: {GONE}"


def message_as_json(message: Message) -> dict[str, Any]:
    """Return a message for a script."""
    content: dict[str, Any] = {
        "id": message.id.hex(),
        "group": message.group_id.hex(),
        "kind": KIND_NAMES[message.kind],
        "time_ns": message.time_ns,
        "sent_at_ns": message.sent_at_ns,
        "sender": message.sender_account,
        "sender_installation": message.sender.hex(),
        "is_proved": message.is_proved,
        "delivery": message.delivery.name.lower(),
        "epoch": message.epoch,
        "originator": None if message.place is None else message.place[0],
        "sequence_id": None if message.place is None else message.place[1],
        "expires_at": message.expires_at,
        "warning": message.warning,
        "from_device": message.imported_from.hex() or None,
        "standing": None if message.standing is None else message.standing.name.lower(),
    }
    if message.kind is MessageKind.APPLICATION:
        return content | {"text": text_of(message)}
    if message.kind in (MessageKind.UNREADABLE, MessageKind.LEFT_BEHIND):
        return content
    return content | {
        "installation": message.changed_installation.hex(),
        "is_installation_proved": message.is_changed_proved,
    }


def groups_lines(groups: Sequence[Group], waiting: Mapping[bytes, int]) -> list[str]:
    """Return a table of groups."""
    if not groups:
        return ["no groups yet"]
    rows = [
        (
            each.id.hex(),
            time_of(each.created_at_ns),
            "-" if each.epoch is None else str(each.epoch),
            str(waiting[each.id]),
            membership(each),
        )
        for each in groups
    ]
    return columns(("group", "since", "epoch", "waits", "you"), rows)


def unopened_lines(welcomes: Sequence[PayloadResult]) -> list[str]:
    """Return a line for each welcome that could not be opened."""
    return [
        f"an invitation of {time_of(each.originator_ns)} cannot be opened; ask for another one: "
        f"{shown_text(each.reason)}"
        for each in welcomes
    ]


def membership(group: Group) -> str:
    """Return the user's membership of a group in a few words."""
    if group.is_imported:
        return "not in it, from another device"
    if group.membership is MembershipState.REJECTED:
        return "rejected"
    if group.epoch is not None and not group.is_member:
        is_behind = group.copied_at_epoch == group.epoch
        return "left behind, COPIED" if is_behind else "removed"
    said = "invited" if group.membership is MembershipState.PENDING else "in it"
    if group.epoch is None:
        said += ", waits for its commit"
    if group.forked_at_epoch is not None:
        said += f", FORKED at epoch {group.forked_at_epoch}"
    if group.copied_at_epoch is not None:
        said += f", COPIED at epoch {group.copied_at_epoch}"
    return said


def group_as_json(group: Group, waiting: int) -> dict[str, Any]:
    """Return a group for a script."""
    return {
        "id": group.id.hex(),
        "created_at_ns": group.created_at_ns,
        "membership": group.membership.name.lower(),
        "is_member": group.is_member,
        "epoch": group.epoch,
        "forked_at_epoch": group.forked_at_epoch,
        "copied_at_epoch": group.copied_at_epoch,
        "is_imported": group.is_imported,
        "waiting": waiting,
    }


def members_lines(
    members: Sequence[Member],
    impostors: Sequence[Member],
    unheard: Mapping[bytes, int],
    own_account: str,
) -> list[str]:
    """Return a table of inboxes, with their installations in the group, and what is doubtful."""
    false = {each.public_key for each in impostors}
    rows, doubts = [], []
    for each in members:
        account = each.credential.decode("utf-8", "backslashreplace")
        key, device = each.public_key, each.public_key.hex()
        note = "you" if account == own_account else ""
        if each.is_backup:
            note = "backup"
        elif key in unheard:
            note = "silent"
            since = time_of(unheard[key])
            doubts.append(f"silent: {device[:NAME]} may not have joined, added {since}")
        if key in false:
            note = "FALSE"
            doubts.append(f"FALSE: not of the inbox that it names: {device}")
        rows.append((shown_text(account)[:64], device[:NAME], note))
    return [*columns(("inbox", "device", ""), rows), *doubts]


def members_as_json(
    members: Sequence[Member], impostors: Sequence[Member], unheard: Mapping[bytes, int]
) -> list[dict[str, Any]]:
    """Return members for a script."""
    false = {each.public_key for each in impostors}
    return [
        {
            "inbox": each.credential.decode("utf-8", "backslashreplace"),
            "installation": each.public_key.hex(),
            "is_of_inbox": each.public_key not in false,
            "is_backup": each.is_backup,
            "silent_since_ns": None if each.is_backup else unheard.get(each.public_key),
        }
        for each in members
    ]


def intents_lines(intents: Sequence[Intent]) -> list[str]:
    """Return a table of intents."""
    if not intents:
        return ["nothing was queued"]
    rows = [
        (
            str(each.id),
            each.kind.name,
            each.state.name,
            str(each.publish_attempts),
            shown_text(each.reason),
        )
        for each in intents
    ]
    return columns(("intent", "kind", "state", "sent", "why"), rows)


def intent_as_json(intent: Intent) -> dict[str, Any]:
    """Return an intent for a script."""
    return {
        "id": intent.id,
        "kind": intent.kind.name.lower(),
        "state": intent.state.name.lower(),
        "epoch": intent.published_in_epoch,
        "attempts": intent.publish_attempts,
        "message": None if intent.message_id is None else intent.message_id.hex(),
        "reason": intent.reason,
    }


def breaches_lines(breaches: Sequence[KeptBreach]) -> list[str]:
    """Return a table of broken rules."""
    if not breaches:
        return ["no node broke a rule, as far as this client saw"]
    rows = [
        (
            str(each.node_id),
            time_of(each.seen_ns),
            "-" if each.misbehavior is None else each.misbehavior.name,
            str(each.taken_by) if each.report is not None else "-",
            shown_text(each.reason),
        )
        for each in breaches
    ]
    return columns(("node", "seen", "type", "taken by", "rule"), rows)


def breach_as_json(breach: KeptBreach) -> dict[str, Any]:
    """Return a broken rule for a script."""
    return {
        "id": breach.id.hex(),
        "node_id": breach.node_id,
        "type": None if breach.misbehavior is None else breach.misbehavior.name,
        "reason": breach.reason,
        "seen_ns": breach.seen_ns,
        "can_be_reported": breach.report is not None,
        "taken_by": breach.taken_by,
    }


def count_waiting(intents: Sequence[Intent]) -> int:
    """Count the intents that are not done."""
    return sum(each.state in UNFINISHED for each in intents)


def _changed(message: Message, own_account: str) -> str:
    shown = shown_account(message.changed_account, message.is_changed_proved, own_account)
    return f"{shown} (device {message.changed_installation.hex()[:NAME]})"


def time_of(nanoseconds: int) -> str:
    """Return a time in UTC; a stranger's time that no calendar has is shown as a number."""
    try:
        moment = datetime.fromtimestamp(nanoseconds // NANOSECONDS_PER_SECOND, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{nanoseconds} ns"
    return moment.strftime("%Y-%m-%d %H:%M:%S")
