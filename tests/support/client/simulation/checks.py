"""The rules that must hold for all members of a simulated group, whatever simulates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from chainkit.types import Place
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.transcript import Message
from chainkit_client.intents.machine import UNFINISHED
from chainkit_client.mls.engine import Installation
from chainkit_client.storage.schema import IntentState, MessageKind
from support.client.group_network import GROUP_ID, epochs_of


class Member:
    """One installation, as far as the checks need it."""

    name: str
    installation: Installation
    groups: Groups
    _was_invited = False

    @property
    def key(self) -> bytes:
        """The installation's public key."""
        return self.installation.public_key

    @property
    def knows_group(self) -> bool:
        """Whether the installation was ever invited."""
        self._was_invited = self._was_invited or bool(self.groups.groups())
        return self._was_invited

    @property
    def is_active(self) -> bool:
        """Whether the installation is a member now, by its own state."""
        found = self.groups.groups()
        return bool(found) and found[0].epoch is not None and found[0].is_member

    @property
    def history(self) -> dict[int, bytes]:
        """The history since the installation last joined."""
        found: dict[int, bytes] = {}
        for epoch in epochs_of(self.groups):
            found[epoch.number] = epoch.authenticator
            if epoch.previous is None:
                break
        return found

    @property
    def head(self) -> tuple[int, bytes]:
        """The installation's epoch, and the epoch's authenticator."""
        history = self.history
        return max(history), history[max(history)]


def unfinished(members: Sequence[Member]) -> list[str]:
    """The intents that have not ended."""
    return [
        f"{member.name} {intent}"
        for member in members
        if member.knows_group
        for intent in member.groups.intents(GROUP_ID)
        if intent.state in UNFINISHED
    ]


def check_end(
    members: Sequence[Member],
    sent: Collection[bytes],
    counts: Counter[str],
    is_signed_twice: Callable[[Place], bool] = lambda place: False,
) -> None:
    """All accept the same commits; nothing is lost or shown twice.

    A message is lost to those who got the other one of two that its originator has signed.
    """
    active = [member for member in members if member.is_active]
    assert active, "somebody is always left"
    heads = {member.name: member.head for member in active}
    assert len(set(heads.values())) == 1, f"clients part ways: {heads}"
    views = {
        frozenset(each.public_key for each in member.groups.view(GROUP_ID).members)
        for member in active
    }
    assert views == {frozenset(member.key for member in active)}, "members differ"
    for member in active:
        assert member.groups.group(GROUP_ID).forked_at_epoch is None, "a fork"
    for member in members:
        _check_done(member)
    for author in members:
        for message_id, place, epoch in _published(author):
            for reader in active:
                if reader is not author and _shares(reader, author, epoch):
                    if is_signed_twice(place) and not _has(reader, message_id):
                        counts["messages of the liar that are lost"] += 1
                    else:
                        _check_read(reader, message_id, place, counts)
    for member in members:
        words = [each.content for each in _messages(member)]
        assert len(words) == len(set(words)), "a message is shown twice"
        assert set(words) <= set(sent), "somebody else's words"


def _check_done(member: Member) -> None:
    """A commit that counts as done is one of those that made the group's epochs."""
    if not member.knows_group:
        return
    accepted = {each.previous: each.payload_hash for each in epochs_of(member.groups)}
    for intent in member.groups.intents(GROUP_ID, (IntentState.COMMITTED, IntentState.PROCESSED)):
        if intent.is_commit and intent.payload_hash is not None:
            # The first commit of a group is not published.
            made = accepted.get(intent.published_in_epoch, b"")
            is_done = made in (None, intent.payload_hash)
            assert is_done, f"{member.name} takes a commit for done that nobody accepted"


def _messages(member: Member) -> list[Message]:
    rows = member.groups.messages(GROUP_ID) if member.knows_group else []
    return [each for each in rows if each.kind is MessageKind.APPLICATION]


def _published(author: Member) -> list[tuple[bytes, Place, int]]:
    """Id, place and epoch of own messages that were read back."""
    return [
        (row.id, row.place, row.epoch)
        for row in _messages(author)
        if row.sender == author.key and row.place is not None and row.epoch is not None
    ]


def _shares(reader: Member, author: Member, epoch: int) -> bool:
    ours, theirs = reader.history, author.history
    return epoch in ours and ours[epoch] == theirs.get(epoch)


def _has(reader: Member, message_id: bytes) -> bool:
    return message_id in {each.id for each in reader.groups.messages(GROUP_ID)}


def _check_read(reader: Member, message_id: bytes, place: Place, counts: Counter[str]) -> None:
    if _has(reader, message_id):
        counts["messages read"] += 1
        return
    results = {
        (each.originator_id, each.sequence_id): each for each in reader.groups.results(GROUP_ID)
    }
    result = results.get(place)
    # MLS drops keys after three epochs, so a late reader has lost the message's key.
    is_late = result is not None and "are gone" in result.reason
    assert is_late, f"a message is lost: {reader.name} {place} {result}"
    counts["messages too old"] += 1
