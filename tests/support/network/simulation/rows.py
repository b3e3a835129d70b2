"""The watchdog's rows of a simulated node: logs in memory, and the chain up to its final block."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Place
from chainkit_node.watching.comparing import PAGE, Question
from chainkit_node.watching.own_rows import MOST_PICKED
from support.network.simulation.chain import ChainPayload

if TYPE_CHECKING:
    from support.network.simulation.node import SimulatedNode

CHAIN_IDS = frozenset({BLOCKCHAIN_ORIGINATOR_ID})

_TOPIC = b"all messages"


class SimulatedRows:
    """As the database has them."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node
        self.chain_ids = CHAIN_IDS

    def final_ids(self) -> Mapping[int, int]:
        return {BLOCKCHAIN_ORIGINATOR_ID: len(self._final())}

    def final_after(self, originator_id: int, after: int) -> Mapping[Place, bytes]:
        rows = enumerate(self._final()[after : after + PAGE], after + 1)
        return {(originator_id, each): self._node.vouches(payload) for each, payload in rows}

    def held(self, places: Collection[Place]) -> Mapping[Place, bytes]:
        final = self.final_after(BLOCKCHAIN_ORIGINATOR_ID, 0)
        found = {each: final[each] for each in places if each in final}
        for originator_id, sequence_id in places:
            log = self._node.logs.get(originator_id)
            held = None if log is None else log.at(sequence_id)
            if held is not None:
                found[originator_id, sequence_id] = held.envelope
        return found

    def topic_question(self, chance: random.Random) -> Question | None:
        highest = {each: self._node.last_id(each) for each in sorted(self._node.logs)}
        highest = {each: last for each, last in highest.items() if last}
        some = chance.sample(list(highest), min(MOST_PICKED, len(highest)))
        picked: list[Place] = []
        for originator_id in some:
            after = chance.randrange(highest[originator_id])
            held = self._node.log(originator_id).after(after)
            assert held is not None
            picked.append((originator_id, held.sequence_id))
        if not picked:
            return None
        cursor = highest | {each: sequence_id - 1 for each, sequence_id in picked}
        cursor[BLOCKCHAIN_ORIGINATOR_ID] = len(self._node.block().payloads)
        return Question(cursor, topics=frozenset({_TOPIC}), picked=tuple(picked))

    def _final(self) -> tuple[ChainPayload, ...]:
        return self._node.block().final.payloads
