"""An honest node of a model chain: worked out from the branches, not by the indexer.

Its tables follow from where its cursor stands and from the reorgs that it saw, by XIP-49 §3.2.1 and
the decisions on reorgs, in the plainest way that there is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from support.chain_times import chain_ns
from support.chains.fake_chain import FIRST_BLOCK, Block
from support.chains.model_chain import Emission, ModelChain

KEY = SigningKey(bytes([7]) * 32)
NOTHING_FINAL = -1

Row = tuple[Any, ...]


@dataclass
class Entry:
    """A line of the journal."""

    reorg_id: int
    emission: Emission
    outcome: str = "dropped"
    new_sequence_id: int | None = None

    @property
    def row(self) -> Row:
        envelope = envelope_of(self.emission) if self.emission.payload.is_valid else None
        digest = digest_of(self.emission)
        place = place_of(self.emission)
        return (self.reorg_id, *place, envelope, digest, self.outcome, self.new_sequence_id)


@dataclass
class ModelNode:
    """A node's cursor, and its history."""

    chain: ModelChain
    cursor: Block | None = None
    final: int = NOTHING_FINAL
    lowest_known: int = FIRST_BLOCK - 1
    reorgs: list[Row] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)

    @property
    def height(self) -> int:
        return self.cursor.number if self.cursor else FIRST_BLOCK - 1

    @property
    def followed(self) -> list[Block]:
        return self.chain.branch(self.cursor)[FIRST_BLOCK:] if self.cursor else []

    @property
    def known(self) -> list[Block]:
        """The blocks that the node still compares with the chain."""
        return self.chain.branch(self.cursor)[self.lowest_known :] if self.cursor else []

    def ancestor(self, blocks: tuple[Block, ...]) -> Block | None:
        """The highest known block that is also on a branch; None where that left below."""
        on_branch = {block.hash for block in blocks}
        return next((block for block in reversed(self.known) if block.hash in on_branch), None)

    def advance(self, to: Block, final: int) -> None:
        """Follow the chain up to a block."""
        start = self.height + 1
        self.cursor = to
        self.final = final
        self.lowest_known = max(self.lowest_known, final)
        for block in self.chain.branch(to)[start:]:
            self._see_again(block)

    @property
    def may_start_over(self) -> bool:
        """Whether nothing in the node is final, so that a fork below everything is followed."""
        return self.cursor is not None and self.final < self.lowest_known

    def roll_back(self, ancestor: Block) -> int:
        """Take back what is above a block; return how many payloads that were."""
        assert self.cursor is not None
        retracted = [
            emission
            for block in self.known
            if block.number > ancestor.number
            for emission in self.chain.emissions(block)
        ]
        reorg_id, old = len(self.reorgs) + 1, self.cursor
        place = (ancestor.number, ancestor.hash, old.number, old.hash)
        self.reorgs.append((reorg_id, *place, old.number - ancestor.number, None))
        self.journal.extend(Entry(reorg_id, emission) for emission in retracted)
        self.cursor = ancestor
        return len(retracted)

    def start_over(self) -> int:
        """Take everything back; return how many payloads that were."""
        assert self.may_start_over
        retracted = self.roll_back(self.chain.every[self.known[0].parent_hash])
        self.cursor, self.final, self.lowest_known = None, NOTHING_FINAL, FIRST_BLOCK - 1
        return retracted

    def _see_again(self, block: Block) -> None:
        """Return dropped payloads to their earlier ids, or move them."""
        seen = list(self.chain.emissions(block))
        for emission in list(seen):
            for entry in self._dropped_like(emission):
                if entry.emission.sequence_id == emission.sequence_id:
                    entry.outcome = "kept"
                    seen.remove(emission)
        for emission in seen:
            for entry in self._dropped_like(emission)[:1]:
                entry.outcome, entry.new_sequence_id = "moved", emission.sequence_id

    def _dropped_like(self, seen: Emission) -> list[Entry]:
        return [
            entry
            for entry in self.journal
            if entry.outcome == "dropped"
            and entry.emission.transaction.name == seen.transaction.name
            and entry.emission.payload == seen.payload
        ]

    # ------------------------------------------------------------------ its tables

    def tables(self) -> dict[str, list[Row]]:
        """The rows of each table, by primary key."""
        emissions = [each for block in self.followed for each in self.chain.emissions(block)]
        emissions.sort(key=lambda each: (each.originator_id, each.sequence_id))
        served = [each for each in emissions if each.payload.is_valid]
        return {
            "envelopes": [served_row(each) for each in served],
            "envelope_logs": [place_of(each) for each in served],
            "quarantine": [kept_back_row(each) for each in emissions if not each.payload.is_valid],
            "blocks": [self._block_row(block) for block in self.known],
            "cursor": self._cursor_rows(),
            "reorgs": self.reorgs,
            "journal": sorted((entry.row for entry in self.journal), key=lambda row: row[:3]),
        }

    def _block_row(self, block: Block) -> Row:
        times = (block.timestamp, self._counts(block))
        return (block.number, block.hash, block.parent_hash, *times)

    def _cursor_rows(self) -> list[Row]:
        if self.cursor is None:
            return []
        return [(1, self.cursor.number, self.cursor.hash, self._counts(self.cursor), self.final)]

    def _counts(self, block: Block) -> str:
        counts = self.chain.counts(block)
        return json.dumps({str(key): counts[key] for key in sorted(counts)})


def place_of(each: Emission) -> Row:
    return (
        each.originator_id,
        each.sequence_id,
        each.block.number,
        each.block.hash,
        each.transaction.hash,
        each.transaction_index,
        each.log_index,
    )


def served_row(each: Emission) -> Row:
    key = (each.originator_id, each.sequence_id)
    return (*key, time_of(each), each.payload.topic, None, envelope_of(each))


def kept_back_row(each: Emission) -> Row:
    payload = each.payload
    reason = "not a ClientEnvelope"
    return (*place_of(each), payload.contract, payload.identifier, payload.data, reason)


def digest_of(each: Emission) -> bytes:
    return keccak256(each.payload.topic + each.payload.data)


def time_of(each: Emission) -> int:
    return chain_ns(each.block.timestamp, each.sequence_id)


@cache
def envelope_of(each: Emission) -> bytes:
    """The signed envelope, by XIP-49 §3.2.1 alone."""
    payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=each.payload.data)
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_node_id=each.originator_id,
        originator_sequence_id=each.sequence_id,
        originator_ns=time_of(each),
        payer_envelope=payer.SerializeToString(),
    ).SerializeToString()
    envelope = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=unsigned)
    envelope.blockchain_proof.transaction_hash = each.transaction.hash
    signature = KEY.sign(keccak256(b"blockchain|" + unsigned + each.transaction.hash))
    envelope.blockchain_proof.node_signature.bytes = signature
    return envelope.SerializeToString()
