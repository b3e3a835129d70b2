"""The updates of an inbox that the contracts emitted: what is stored, and the blocks behind it.

Most contracts index no inbox id, so that a search reads the updates of all inboxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from chainkit.chain import LogFilter
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import MalformedLog
from chainkit.protocol.envelope import quarantine_reason
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.types import Place, TopicKind
from chainkit_client.network.chain import Chain
from chainkit_client.storage.posted import Posted, read_posted, write_posted
from chainkit_client.storage.store import Store

MOST_BLOCKS: Final = 1_000_000
"""Blocks in which an inbox's updates are searched at first."""

REORG_BLOCKS: Final = 100
"""The newest blocks, which are always searched: short reorgs do not bring back the first search."""


class PostedUpdates:
    """The updates that an endpoint gives; what is behind REORG_BLOCKS is stored.

    A stored search holds for as long as the chain has its last block, and for one endpoint: what
    another one left out is searched for again.
    """

    def __init__(self, chain: Chain, store: Store, now_ns: Callable[[], int]) -> None:
        """Take the chain, the client's database, and a clock."""
        self._chain = chain
        self._store = store
        self._now_ns = now_ns

    def of(self, inbox_id: bytes) -> Mapping[Place, bytes]:
        """Return an inbox's updates as contracts emitted them; blocks.

        ClientEnvelopes, by originator and sequence id; those are left out that no node serves.
        Raises ChainError, and StoreError.
        """
        record, updates = self._chain.record, dict[Place, bytes]()
        if not isinstance(record, FollowedDeployment):
            record = FollowedDeployment.of(record)
        for contract in record.contracts:
            if contract.kind is TopicKind.IDENTITY_UPDATE:
                updates |= self._of_contract(contract, inbox_id)
        return updates

    def _of_contract(self, contract: PayloadContract, inbox_id: bytes) -> Mapping[Place, bytes]:
        endpoint, seal = self._chain.endpoint, self._store.seal
        name = contract.address + inbox_id + endpoint.name.encode()
        with self._store.reading() as connection:
            stored = read_posted(connection, seal, name)
        head = endpoint.head().number
        # Asked for before the logs: a reorg between the two shows in the next search.
        settled = endpoint.find_header(max(head - REORG_BLOCKS, 0))
        if stored is not None and not self._chain.still_there([stored.through]):
            stored = None
        before = {} if stored is None else stored.updates
        first = max(contract.block, head - MOST_BLOCKS + 1)
        if stored is not None:
            first = stored.through.number + 1
        found = dict(self._search(contract, inbox_id, first, head))
        if settled is not None and settled.number >= first:
            kept = {place: data for place, (at, data) in found.items() if at <= settled.number}
            posted = Posted(settled.reference, {**before, **kept})
            with self._store.writing() as connection:
                write_posted(connection, seal, name, posted, self._now_ns())
        return {**before, **{place: data for place, (_, data) in found.items()}}

    def _search(
        self, contract: PayloadContract, inbox_id: bytes, first: int, last: int
    ) -> Iterator[tuple[Place, tuple[int, bytes]]]:
        """Yield place, block and payload; of one inbox alone where contracts index inbox ids."""
        argument = inbox_id if contract.layout.is_identifier_indexed else b""
        wanted = LogFilter((contract.address,), (contract.topic,), argument)
        for _, logs in logs_by_pieces(self._chain.endpoint, first, last, wanted):
            for log in logs:
                with suppress(MalformedLog):
                    event = decode_payload_event(log, contract)
                    if event.identifier == inbox_id and quarantine_reason(event) is None:
                        place = event.originator_id, event.sequence_id
                        yield place, (log.block_number, event.payload)
