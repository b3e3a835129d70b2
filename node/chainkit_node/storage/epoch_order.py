"""A page in which today's clients lose no message of a group (ADR 55, ADR 73).

Such a client orders a page by time, and puts a message behind the payload of the chain that the
message names; then it drops what has a lower id than an earlier message of the same originator. It
cannot read a message once more than three commits were applied that came after the message's epoch,
and sends a message of its own once more after three. But blocks are dated in whole seconds, a reorg
dates them anew, and a page does not have all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.message import parse_message_header
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope, in_time_order
from chainkit_node.storage.held_back import client_envelope, named_commit

_PAST_EPOCHS: Final = 2
"""Commits that may come before a message of an earlier epoch.

Readers open a message that is three commits behind (MAX_PAST_EPOCHS in libxmtp), but its sender
takes it for lost.
"""
_UNNAMED_NS: Final = 60 * NANOSECONDS_PER_SECOND
"""How much later than a commit a message is that need not name the commit to come behind it."""


def in_epoch_order(
    commits: Sequence[StoredEnvelope], others: Sequence[StoredEnvelope], seen: int
) -> list[StoredEnvelope]:
    """Return the first rows of a page that loses nothing, in the order of the groups' epochs.

    ``commits`` are the chain's next payloads for groups by sequence id, of which a reader has
    ``seen`` those up to an id; ``others`` are the next envelopes of all other originators. A commit
    stands before the first message that names the commit or a later one, and no sooner: other
    messages before it are of earlier epochs. The page ends with the first row after which a client
    would lose one; there is at least one row, if there is any.
    """
    page = _ClientsPage(seen)
    waiting = deque(commits)
    for row in in_time_order(others):
        is_of_group = bool(commits) and TopicKind.GROUP_MESSAGE.matches(row.topic)
        name = named_commit(row.envelope) if is_of_group else 0
        while waiting and _precedes(waiting[0], row, name):
            if not page.takes_commit(waiting.popleft()):
                return page.rows
        if not page.takes(row, name):
            return page.rows
    while waiting and page.takes_commit(waiting.popleft()):
        pass
    return page.rows


def _precedes(commit: StoredEnvelope, row: StoredEnvelope, name: int) -> bool:
    return commit.sequence_id <= name or commit.originator_ns + _UNNAMED_NS < row.originator_ns


class _Message(NamedTuple):
    """A message of a group in a page."""

    read_at: int
    """The time to which a client moves the message, in nanoseconds."""
    epoch: int


class _ClientsPage:
    """Rows of a page, and the order in which today's clients read them."""

    def __init__(self, seen: int) -> None:
        self.rows: list[StoredEnvelope] = []
        self._seen = seen
        self._commits: defaultdict[bytes, list[StoredEnvelope]] = defaultdict(list)
        self._messages: defaultdict[bytes, list[_Message]] = defaultdict(list)
        self._read_at: defaultdict[tuple[int, bytes], int] = defaultdict(int)

    def takes_commit(self, row: StoredEnvelope) -> bool:
        """Add a commit, unless a client would apply it too early for a message of the page."""
        messages = self._messages[row.topic]
        overtaken = [each.epoch for each in messages if each.read_at >= row.originator_ns]
        epoch = _epoch(row) if overtaken else None
        if epoch is not None and epoch + 1 - min(overtaken) > _PAST_EPOCHS:
            return False
        self._commits[row.topic].append(row)
        self.rows.append(row)
        return True

    def takes(self, row: StoredEnvelope, name: int) -> bool:
        """Add another envelope, unless a client would read it before an earlier one."""
        log = row.originator_id, row.topic
        commits = self._commits[row.topic]
        place = bisect_left(commits, name, key=lambda each: each.sequence_id)
        read_at = row.originator_ns
        if name > self._seen and place < len(commits):
            read_at = max(read_at, commits[place].originator_ns)
        if read_at < self._read_at[log]:
            return False
        self._read_at[log] = read_at
        self.rows.append(row)
        if (epoch := _epoch(row)) is not None:
            self._messages[row.topic].append(_Message(read_at, epoch))
        return True


def _epoch(row: StoredEnvelope) -> int | None:
    """Return the epoch of a group message, which MLS has in the clear; None of anything else.

    Nobody proves the epoch. A false one ends a page early.
    """
    if not TopicKind.GROUP_MESSAGE.matches(row.topic):
        return None
    try:
        message = client_envelope(row.envelope).group_message
        return parse_message_header(message.v1.data).epoch
    except (DecodeError, MalformedMls):
        return None
