"""Publishes a commit again where a reorg left it below the id that it had (ADR 51).

Members' messages name the id of the commit that they follow. Where the commit, mined again before
another sender's, has a lower one, nodes refuse such messages, and today's clients that have not
read the commit wait for the named id without end. Anything that the chain has on the group's topic
from that id on ends both; the commit's own bytes change nothing for a member, whose epoch is past.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import stated_place
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import PassedOn
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, TopicKind
from chainkit_gateway.types import NodeList, Publication

_NODE_SECONDS: Final = 10.0


class Account(Protocol):
    """The part of ``PayerAccount`` that is used."""

    def fallen(self) -> list[tuple[Publication, int]]:
        """Return payloads that a reorg left below an id that they had, with that id."""
        ...

    def send_again(self, publication: Publication) -> None:
        """Send a publication in one more transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Fallen:
    """The commits of an account that fell."""

    account: Account
    nodes: NodeList

    async def publish_again(self) -> None:
        """Send each fallen commit again whose group has nothing from its former id on.

        Raises what the account raises.
        """
        for publication, sequence_id in await asyncio.to_thread(self.account.fallen):
            if publication.kind is not TopicKind.GROUP_MESSAGE:
                continue
            if await self._is_highest(publication.topic, sequence_id):
                await asyncio.to_thread(self.account.send_again, publication)
                text = f"payload {sequence_id} of the chain fell in a reorg: sent again"
                facts = {"sequence_id": sequence_id, "topic": publication.topic.hex()}
                log_event(LogEvent("payload_sent_again", text, facts, level=logging.WARNING))

    async def _is_highest(self, topic: bytes, sequence_id: int) -> bool:
        """Return whether a node has nothing of the chain from an id on; False where none answers.

        A node that has not followed the reorg so far has the payload: it is asked again later.
        """
        cursor = {BLOCKCHAIN_ORIGINATOR_ID: sequence_id - 1}
        for node in self.nodes.for_topic(topic):
            try:
                # Envelopes come by originator: the chain's are first.
                page = await node.behind(topic, cursor, _NODE_SECONDS)
            except (NodeLost, NodeUnreached, PassedOn):
                continue
            return not page or stated_place(page[0])[0] != BLOCKCHAIN_ORIGINATOR_ID
        return False
