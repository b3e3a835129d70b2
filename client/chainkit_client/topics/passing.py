"""A topic that is compared and not applied: its envelopes are handed on as they come.

Rules, heads and missing places are judged as for every topic. Memory holds no envelope that came: a
topic of any length is read in the same memory, but for some 60 bytes of each envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

from chainkit.errors import MalformedData
from chainkit.protocol.envelope import stated_place
from chainkit.types import Place
from chainkit_client.reading.spooled import SpooledLogs
from chainkit_client.reading.verified import Keys, VerifiedEnvelope
from chainkit_client.topics.following import Followed, Topic


class PassingTopic(Topic):
    """One topic; not for several threads."""

    def __init__(
        self, topic: bytes, file: BinaryIO, hand_on: Callable[[VerifiedEnvelope], None]
    ) -> None:
        """Begin with nothing; an empty file takes the envelopes, ``hand_on`` each new one once."""
        self._spooled = SpooledLogs(file)
        super().__init__(topic, logs=self._spooled)
        self._hand_on = hand_on

    def hold(self, envelopes: Iterable[bytes], server_id: int, keys: Keys, now_ns: int) -> Followed:
        """Take a node's answer. The outcome has no envelope: all that are new were handed on."""
        new = [each for each in envelopes if not self._has(each)]
        followed = super().hold(new, server_id, keys, now_ns)
        for each in (*followed.accepted, *followed.second):
            self._hand_on(each)
        followed.accepted, followed.second = [], []
        followed.add(self.look(now_ns))
        return followed

    def _has(self, data: bytes) -> bool:
        """Return whether these bytes are held: another node served them, and they were verified."""
        try:
            originator_id, sequence_id = stated_place(data)
        except MalformedData:
            return False
        held = self._spooled.log(originator_id).at(sequence_id)
        return held is not None and held.envelope == data

    def _is_known(self, originator_id: int, sequence_id: int) -> bool:
        is_held = self._spooled.log(originator_id).has(sequence_id)
        return is_held or super()._is_known(originator_id, sequence_id)

    def _apply(
        self,
        envelopes: Iterable[VerifiedEnvelope],
        unmet: Mapping[Place, Sequence[Place]],
        followed: Followed,
    ) -> None:
        for each in envelopes:
            del self._waiting[each.place]
            self._given_up.discard(each.place)
            highest = self._applied.get(each.originator_id, 0)
            self._applied[each.originator_id] = max(highest, each.sequence_id)
