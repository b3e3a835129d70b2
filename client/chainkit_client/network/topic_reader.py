"""Reads one topic from several nodes, and asks for what nodes left out (§3.3.4, §3.3.5).

A round asks some nodes for all new envelopes, and all nodes where the answers of these differ; then
every node for the head of its own envelopes, and then for each missing range, for each place that
is still missing, and for the other envelope of a place in which a head has another one: first the
originator, then all other nodes. A node may answer anything: pages must advance, lists must end,
and a node that fails is left out of the round. A node that is proved to have lied is asked for new
envelopes only where no other node answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from chainkit.errors import ChainkitError, MalformedAnswer, MalformedData
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.envelope_queries import page_behind, topics_behind
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.topic_heads import Entry
from chainkit.service.refusals import PassedOn
from chainkit.types import Place
from chainkit_client.network.asked import ASK_SECONDS, AskedNode
from chainkit_client.ordering.ranges import RangeRequest
from chainkit_client.reading.verified import Keys, read_envelope
from chainkit_client.topics.following import Followed, Topic

PAGE: Final = 500
"""Envelopes of one request, as long as a node brings them in time."""

SMALLER: Final = 8
"""How many times fewer envelopes are asked for after a page did not come in time."""

ONE_SECONDS: Final = 3 * ASK_SECONDS
"""How long one envelope may take: it has 4 MiB at most."""

MOST_LISTED: Final = 100_000
"""Entries of one head that a node may list."""

MOST_RANGES: Final = 100
"""Missing ranges that one round asks for; the next round goes on."""

ROUND_SECONDS: Final = 60.0
"""How long a node may take for each part of a round."""

MOST_PLACES: Final = 100
"""Missing places that one round asks for one by one, those that were asked for least first."""

_LARGEST_ID: Final = 2**63 - 1
_GONE: Final = (MalformedData, NodeLost, NodeUnreached, PassedOn, TimeoutError)


class NodesSilent(ChainkitError):
    """No node answered: nothing is known about the topic."""


class TopicReader:
    """One topic, read on one event loop."""

    def __init__(
        self,
        topic: Topic,
        nodes: Callable[[], Sequence[AskedNode]],
        keys: Callable[[], Keys],
        now_ns: Callable[[], int],
        at_once: int = 2,
        proved: Container[int] = (),
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        """Take the topic, its nodes in the order of preference, keys, and a clock since 1970.

        ``at_once`` nodes are asked for all new envelopes, if so many answer; ``proved`` has the
        nodes that are proved to have lied. Each part of a round takes ``round_seconds`` at most.
        """
        self.topic = topic
        self._round_seconds = round_seconds
        self._nodes = nodes
        self._keys = keys
        self._now_ns = now_ns
        self._at_once = at_once
        self._proved = proved
        self._pages: dict[int, int] = {}
        """Envelopes of the next request to a node, where a page did not come in time."""
        self.silent: dict[int, str] = {}
        """Why nodes did not answer in the last round, by their ids."""

    async def read(self) -> Followed:
        """Do one round, and return the result. Raises NodesSilent."""
        found, nodes = Followed(), self._nodes()
        while True:
            self.silent = {}
            await self._read_new(nodes, found)
            has_answer = len(self.silent) < len(nodes) or bool(found.accepted)
            if has_answer or not any(self._pages.get(each, PAGE) < PAGE for each in self.silent):
                break
        if not has_answer:
            got = "; ".join(f"{each}: {why}" for each, why in self.silent.items()) or "no node"
            raise NodesSilent("topic", "an answer of a node", got)
        await asyncio.gather(*(self._in_round(each, self._read_head, found) for each in nodes))
        found.add(self.topic.look(self._now_ns()))
        for request in self.topic.requests()[:MOST_RANGES]:
            await self._read_range(request, nodes, found)
        for place in (*self.topic.missing(), *self.topic.disputed())[:MOST_PLACES]:
            await self._read_place(place, nodes, found)
        found.add(self.topic.look(self._now_ns()))
        return found

    async def ask_head(self, node: AskedNode) -> Followed:
        """Ask one node for its head alone, and return what the head shows."""
        found = Followed()
        await self._in_round(node, self._read_head, found)
        return found

    async def _read_new(self, nodes: Sequence[AskedNode], found: Followed) -> None:
        """Ask nodes for new envelopes, and nodes with a proof against them where nobody answers."""
        trusted = [each for each in nodes if each.node_id not in self._proved]
        if not await self._ask_some(trusted, found):
            await self._ask_some([each for each in nodes if each not in trusted], found)

    async def _ask_some(self, nodes: Sequence[AskedNode], found: Followed) -> int:
        """Ask some nodes at a time until ``at_once`` answered; return how many have answered.

        Where the answers differ, one node is late or lies: all nodes are asked.
        """
        waiting = list(nodes)
        answers: dict[int, set[Place]] = {}
        # All nodes get the same cursor: one node's answer must not hide what another one has.
        begin = self.topic.cursor.sequence_ids

        async def read(node: AskedNode, into: Followed) -> None:
            answers[node.node_id] = await self._read_pages(node, begin, into, bool(waiting))

        while waiting and len(answers) < self._at_once:
            count = self._at_once - len(answers)
            asked, waiting = waiting[:count], waiting[count:]
            await asyncio.gather(*(self._in_round(each, read, found) for each in asked))
        one, *others = list(answers.values()) or [set()]
        if found.conflicts or any(each != one for each in others):
            await asyncio.gather(*(self._in_round(each, read, found) for each in waiting))
        return len(answers)

    async def _in_round(
        self,
        node: AskedNode,
        read: Callable[[AskedNode, Followed], Awaitable[None]],
        found: Followed,
    ) -> None:
        """Record why a node gave no answer, if it gave none."""
        try:
            async with asyncio.timeout(self._round_seconds):
                await read(node, found)
        except _GONE as error:
            self.silent[node.node_id] = str(error) or f"not done after {self._round_seconds:g} s"

    async def _read_pages(
        self, node: AskedNode, begin: Mapping[int, int], found: Followed, is_compared: bool
    ) -> set[Place]:
        """Take all pages of a node's answer; return the places that the node serves.

        Where nobody compares the places with another node's, none is returned.
        """
        cursor, served = dict(begin), set[Place]()
        while page := await self._page(node, cursor):
            self._take(node, page, found)
            before = dict(cursor)
            places = list(map(stated_place, page))
            if is_compared:
                served.update(places)
            for originator_id, sequence_id in places:
                cursor[originator_id] = max(cursor.get(originator_id, 0), sequence_id)
            if cursor == before:
                got = "some that lie before it"
                raise MalformedAnswer(
                    f"answer of node {node.node_id}", "what lies behind a cursor", got
                )
        return served

    async def _page(self, node: AskedNode, cursor: Mapping[int, int]) -> Sequence[bytes]:
        """Ask for a page behind a cursor: for a smaller one the next time, where none came.

        All that came before is kept. So a topic of long envelopes is read also over a slow line.
        Where one envelope did not come, either, the node is asked for whole pages again.
        """
        count = self._pages.get(node.node_id, PAGE)
        try:
            page = await node.query(
                self._query(cursor, count), ASK_SECONDS if count > 1 else ONE_SECONDS
            )
        except NodeLost:
            self._pages[node.node_id] = max(1, count // SMALLER) if count > 1 else PAGE
            raise
        self._pages[node.node_id] = min(PAGE, 2 * count)
        return page

    async def _read_head(self, node: AskedNode, found: Followed) -> None:
        topic = self.topic
        try:
            head, _ = await node.topic_head(topic.topic, None, ASK_SECONDS)
        except (NodeLost, NodeUnreached, PassedOn):
            # Other implementations have no heads, and a restarting node has none for a while.
            return
        taken = self._take_head(node, head, found)
        if taken.must_list is not None:
            after = taken.must_list.entries_after
            head, entries = await self._listed(node, after)
            taken = self._take_head(node, head, found)
            if taken.must_list is not None:
                signed = taken.must_list.signed
                found.add(topic.take_entries(signed, entries, after, self._now_ns()))

    async def _listed(self, node: AskedNode, after: int) -> tuple[bytes, list[Entry]]:
        """Return a head, and all its entries behind an id."""
        entries: list[Entry] = []
        last = after
        while True:
            head, page = await node.topic_head(self.topic.topic, last, ASK_SECONDS)
            if not page:
                return head, entries
            entries += page
            if len(entries) > MOST_LISTED or page[-1].sequence_id <= last:
                subject = f"entries of node {node.node_id}"
                raise MalformedAnswer(subject, f"up to {MOST_LISTED}, behind {last}", "others")
            last = page[-1].sequence_id

    async def _read_range(
        self, wanted: RangeRequest, nodes: Sequence[AskedNode], found: Followed
    ) -> None:
        """Ask nodes for a range until no part is missing: its originator first."""
        for node in _originator_first(wanted.originator_id, nodes):
            if node.node_id not in self.silent:
                await self._in_round(node, lambda one, into: self._fill(one, wanted, into), found)
                if not self._is_missing(wanted):
                    return

    async def _fill(self, node: AskedNode, wanted: RangeRequest, found: Followed) -> None:
        keys, originator_id = self._keys(), wanted.originator_id
        others = dict.fromkeys((*keys.chain_ids, *keys.by_node), _LARGEST_ID)
        last = wanted.after
        while last < wanted.through:
            query = self._query({**others, originator_id: last}, PAGE)
            page = await node.query(query, ASK_SECONDS)
            if not page:
                break
            self._take(node, page, found)
            ids = [number for one, number in map(stated_place, page) if one == originator_id]
            highest = max(ids, default=0)
            if highest <= last:
                subject = f"answer of node {node.node_id}"
                raise MalformedAnswer(subject, f"ids above {last}", highest)
            last = highest

    async def _read_place(self, place: Place, nodes: Sequence[AskedNode], found: Followed) -> None:
        """Ask nodes for exactly one place until it is not wanted: its originator first."""
        for node in _originator_first(place[0], nodes):
            if node.node_id not in self.silent and self.topic.is_wanted(place):
                await self._in_round(node, lambda one, into: self._ask_for(one, place, into), found)

    async def _ask_for(self, node: AskedNode, place: Place, found: Followed) -> None:
        """Ask for what is in a place: no envelope waits for one of another topic."""
        originator_id, number = place
        page = await node.query(page_behind(originator_id, number - 1, 1), ASK_SECONDS)
        if not page or stated_place(page[0]) != place:
            self.topic.lacks(place, node.node_id)
            return
        envelope = read_envelope(page[0], node.node_id, self._keys()).envelope
        if envelope is not None and envelope.topic != self.topic.topic:
            self.topic.found_elsewhere(place)
        else:
            self._take(node, page[:1], found)

    def _is_missing(self, wanted: RangeRequest) -> bool:
        return any(
            each.originator_id == wanted.originator_id
            and each.after < wanted.through <= each.through
            for each in self.topic.requests()
        )

    def _query(
        self, cursor: Mapping[int, int], limit: int
    ) -> message_api_pb2.QueryEnvelopesRequest:
        query = topics_behind([self.topic.topic], cursor)
        return message_api_pb2.QueryEnvelopesRequest(query=query, limit=limit)

    def _take(self, node: AskedNode, page: Iterable[bytes], found: Followed) -> None:
        found.add(self.topic.hold(page, node.node_id, self._keys(), self._now_ns()))

    def _take_head(self, node: AskedNode, head: bytes, found: Followed) -> Followed:
        taken = self.topic.take_head(head, node.node_id, self._keys())
        found.add(taken)
        return taken


def _originator_first(originator_id: int, nodes: Sequence[AskedNode]) -> list[AskedNode]:
    return sorted(nodes, key=lambda each: each.node_id != originator_id)
