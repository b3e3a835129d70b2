"""A conversation of a group whose network is broken meanwhile, and whether all was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from support.network.drill import NONE, Differences, Group, differences, renamed
from support.network.node_sdk import NodeSdkClient, NodeSdkFailed


def is_name(shown: str) -> bool:
    """Whether a list or a stream shows a rename so."""
    return shown.startswith(renamed(""))


@dataclass
class Story:
    """Texts and names of a group: those that its members' clients called sent, and the failed."""

    group: Group
    commits_before: int
    sent: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    wishes: int = 0
    """How many names members have tried to give."""

    @property
    def count(self) -> int:
        """How many texts and names members have tried to send."""
        return len(self.sent) + len(self.named) + len(self.failed)

    def send(self, member: NodeSdkClient, text: str) -> None:
        """Send a text, and note what became of it."""
        try:
            member.send(self.group.group_id, text)
        except NodeSdkFailed:
            self.failed.append(text)
        else:
            self.sent.append(text)

    def rename(self, member: NodeSdkClient, name: str) -> None:
        """Rename the group, and note what became of it; one member at a time."""
        self.wishes += 1
        try:
            member.rename(self.group.group_id, name)
        except NodeSdkFailed:
            self.failed.append(renamed(name))
        else:
            self.named.append(renamed(name))

    def faults(self, shown: Sequence[str]) -> Differences:
        """Return what a list or a stream lacks, and what it has and should not, or too often."""
        # A text whose sending failed may be published all the same, once.
        published = set(self.failed) & set(shown)
        return differences([*self.sent, *self.named, *published], shown)

    def listed_faults(self, of_one_order: bool) -> dict[str, Differences]:
        """Return what the members' lists lack, and where their orders differ.

        Without ``of_one_order`` texts have one order and names have one, but not both together.
        """
        lists = [each[len(self.group.members) :] for each in self.group.lists()]
        found = {f"list {place}": self.faults(each) for place, each in enumerate(lists)}
        sent = [[item for item in each if item not in self.failed] for each in lists]
        orders = sent if of_one_order else [sorted(each, key=is_name) for each in sent]
        for place, order in enumerate(orders[1:], 1):
            pairs = [pair for pair in zip(orders[0], order, strict=False) if pair[0] != pair[1]]
            found[f"order {place}"] = [one for one, _ in pairs], [other for _, other in pairs]
        return {key: value for key, value in found.items() if value != NONE}

    def streamed_faults(
        self, listeners: Sequence[NodeSdkClient], *, may_repeat: bool = False
    ) -> dict[str, Differences]:
        """Return what streams lack so far, and what they have too often.

        With ``may_repeat`` they may have things twice (docs/gateway.md).
        """
        streams = [each.streamed(self.group.group_id) for each in listeners]
        if may_repeat:
            streams = [list(dict.fromkeys(each)) for each in streams]
        found = {f"stream {place}": self.faults(each) for place, each in enumerate(streams)}
        return {key: value for key, value in found.items() if value != NONE}
