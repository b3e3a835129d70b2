"""Another node, as a simulated one asks it over a link: its streams, and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc

from chainkit.protocol.envelope import parse_originator_envelope, stated_place
from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.methods import COMPARE_RANGES, QUERY_ENVELOPES
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto import message_api_pb2, node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_node.peers.client import QUIET_SECONDS, PeerRefused, PeerSilent
from support.network.simulation.lies import STRANGER, ChainLie, Lie
from support.network.simulation.world import World

if TYPE_CHECKING:
    from support.network.simulation.node import SimulatedNode


@dataclass
class SimulatedPeer:
    """A node as another one asks it, over a link."""

    world: World
    reader: SimulatedNode
    node: SimulatedNode
    url: str
    """Where it is looked for."""
    is_stranger: bool = False
    """The reader shows no token, as a client does."""

    async def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        shows_token = self._shows_token()
        await self._arrive(header_seconds, shows_token)
        yield []
        begun = len(self.node.filled)
        life = self.node.tasks
        while True:
            self._check(life)
            self._check_token(shows_token)
            self._check_filled(self.node.filled[begun:], originator_id, after_id)
            page, after_id = self.node.page(self.reader.node_id, originator_id, after_id)
            if page:
                await self.world.travel()
                await self._until_linked(QUIET_SECONDS)
                self._check(life)
                self._note(originator_id, page)
                yield page
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(15):
                    await self.node.changed.wait()
            await self._until_linked(QUIET_SECONDS)
            yield []

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        await self._arrive(seconds, self._shows_token())
        answer = self._answer(method, request)
        await self.world.travel()
        if self._is_lost():
            raise self._silent()
        if self.is_stranger:
            self._note_chain(answer)
        return answer

    def _answer(self, method: str, request: bytes) -> bytes:
        if method == COMPARE_RANGES:
            if self.node.liar is not None and not self.node.liar.compares:
                refusal = PeerRefused(f"node {self.node.node_id}", "envelopes", "UNIMPLEMENTED")
                refusal.code = grpc.StatusCode.UNIMPLEMENTED
                raise refusal
            asked = node_api_pb2.CompareRangesRequest.FromString(request)
            ranges = [LogRange(each.level, each.number) for each in asked.ranges]
            held = self.node.held_ranges(
                asked.originator_node_id, asked.through_sequence_id, ranges
            )
            answer = node_api_pb2.CompareRangesResponse(highest_sequence_id=held.highest)
            for content in held.contents:
                answer.contents.add(digests=content.digests, expired=content.expired)
            return answer.SerializeToString()
        assert method == QUERY_ENVELOPES
        query = message_api_pb2.QueryEnvelopesRequest.FromString(request)
        cursor = query.query.last_seen.node_id_to_sequence_id
        # All messages have one topic.
        originator_ids = query.query.originator_node_ids or (
            *(BLOCKCHAIN_ORIGINATOR_ID, *sorted(self.node.logs)),
        )
        reader_id = STRANGER if self.is_stranger else self.reader.node_id
        found: list[bytes] = []
        for each in originator_ids:
            found += self.node.page(reader_id, each, cursor[each])[0]
        return written_envelopes(found[: query.limit])

    def _note_chain(self, answer: bytes) -> None:
        """Let a liar know that an honest node got what is not of the chain that it holds final."""
        liar = self.node.liar
        if liar is None or not isinstance(liar.lie, ChainLie) or self.reader.liar is not None:
            return
        final = self.reader.block().final.payloads
        for each in Envelopes.FromString(answer).envelopes:
            if stated_place(each)[0] == BLOCKCHAIN_ORIGINATOR_ID:
                served = parse_originator_envelope(each)
                own = final[served.sequence_id - 1 : served.sequence_id]
                unsigned = served.unsigned_originator_envelope
                liar.is_told |= any(each.unsigned != unsigned for each in own)

    def _note(self, originator_id: int, page: Sequence[bytes]) -> None:
        """Let a liar know what of its own log arrived at an honest node."""
        liar = self.node.liar
        if liar is None or originator_id != self.node.node_id or self.reader.liar is not None:
            return
        # A repair may have brought later ones before: a stream that repeats them shows no gap.
        lacked = self.reader.last_id(originator_id) < liar.from_id
        ids = [parse_originated(each).envelope.sequence_id for each in page]
        liar.reached(lacked, list(zip(ids, page, strict=True)))

    async def close(self) -> None:
        """There is nothing to close."""

    async def _arrive(self, seconds: float, shows_token: bool) -> None:
        """Send a request and wait for the first bytes of the answer."""
        await self.world.travel()
        lie = self.node.liar.lie if self.node.liar else None
        if not self.node.is_up or self._has_moved():
            raise self._silent()
        if self._is_lost() or lie is Lie.STALLS:
            await asyncio.sleep(seconds)
            raise self._silent()
        if lie is Lie.FAILS:
            raise PeerRefused(f"node {self.node.node_id}", "envelopes", "INTERNAL")
        self._check_token(shows_token)
        await asyncio.sleep(2.0 if lie is Lie.DRIPS else 0.0)
        await self.world.travel()

    async def _until_linked(self, seconds: float) -> None:
        """Wait for a link that is cut; nothing is lost if it is mended in time."""
        deadline = self.world.seconds() + seconds
        while self._is_lost():
            if self.world.seconds() > deadline:
                raise self._silent()
            await asyncio.sleep(1.0)

    def _shows_token(self) -> bool:
        """Tell whether the reader says who it is: it does so while it knows that it is enabled."""
        return not self.is_stranger and self.reader.knows_enabled(self.reader.node_id)

    def _check_token(self, shows_token: bool) -> None:
        """Refuse a reader that says it is a node, and that this one's registry does not enable."""
        if shows_token and not self.node.knows_enabled(self.reader.node_id):
            got = f"node {self.reader.node_id}"
            refusal = PeerRefused(f"node {self.node.node_id}", "a node that is enabled", got)
            refusal.code = grpc.StatusCode.UNAUTHENTICATED
            raise refusal

    def _check(self, life: Iterable[Any]) -> None:
        if self.node.tasks is not life or self._has_moved():
            raise self._silent()

    def _check_filled(
        self, filled: Sequence[tuple[int, int]], originator_id: int, after_id: int
    ) -> None:
        below = [each for of, each in filled if of == originator_id and each <= after_id]
        if below:
            refusal = PeerRefused(f"node {self.node.node_id}", "the same log", "a gap was filled")
            refusal.cursor = {originator_id: min(below) - 1}
            raise refusal

    def _has_moved(self) -> bool:
        return self.url != self.node.entry().http_address

    def _is_lost(self) -> bool:
        return self.world.is_cut(self.reader.node_id, self.node.node_id)

    def _silent(self) -> PeerSilent:
        return PeerSilent(f"node {self.node.node_id}", "an answer", "none")
