"""A conversation of a group whose network is broken meanwhile, and whether all was shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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

    def listed_faults(
        self, of_one_order: bool, repeated: Collection[str]
    ) -> dict[str, Differences]:
        """Return what the members' lists lack, and where their orders differ.

        Without ``of_one_order`` texts have one order and names have one, but not both together.
        Texts that were ``repeated`` have no place of their own.
        """
        lists = [each[len(self.group.members) :] for each in self.group.lists()]
        found = {f"list {place}": self.faults(each) for place, each in enumerate(lists)}
        placeless = {*self.failed, *repeated}
        sent = [[item for item in each if item not in placeless] for each in lists]
        orders = sent if of_one_order else [sorted(each, key=is_name) for each in sent]
        for place, order in enumerate(orders[1:], 1):
            pairs = [pair for pair in zip(orders[0], order, strict=False) if pair[0] != pair[1]]
            found[f"order {place}"] = [one for one, _ in pairs], [other for _, other in pairs]
        return {key: value for key, value in found.items() if value != NONE}

    def streamed_faults(
        self, listeners: Sequence[NodeSdkClient], *, are_late: bool
    ) -> dict[str, Differences]:
        """Return what streams lack so far, and what they have too often.

        Where commits ``are_late``, streams may repeat a text and lack a name (docs/gateway.md).
        """
        found = {}
        for place, each in enumerate(listeners):
            shown = each.streamed(self.group.group_id)
            missing, extra = self.faults(shown)
            if are_late:
                missing = [item for item in missing if not is_name(item)]
                extra = [item for item in extra if item not in self.sent]
            found[f"stream {place}"] = missing, extra
        return {key: value for key, value in found.items() if value != NONE}

    def repeated(self, listeners: Sequence[NodeSdkClient]) -> set[str]:
        """Return the texts that streams have twice: those that today's clients sent twice."""
        streams = (each.streamed(self.group.group_id) for each in listeners)
        extra = (item for each in streams for item in self.faults(each)[1])
        return set(extra).intersection(self.sent)
