"""One batch: what each node serves beside what the chain demands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.signatures import BLOCKCHAIN_LABEL, SIGNATURE_LENGTH, keccak256
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.reconcile.screening.chain_rows import ChainRows
from chainkit_jobs.reconcile.screening.expected_bytes import Flags, Integers, pieces, slices
from chainkit_jobs.reconcile.screening.node_rows import HIGHEST_SEQUENCE, Rows
from chainkit_jobs.reconcile.served import signature_problem


@dataclass(frozen=True, slots=True)
class ScreenedNode:
    """A node, and the part of the chain that it must serve."""

    node_id: int
    registered_key: bytes
    """65 bytes."""
    first_block: int
    last_block: int
    answered_to: int = HIGHEST_SEQUENCE
    """A payload of a higher sequence need not be served."""


@dataclass(slots=True)
class Screened:
    """The result for a batch."""

    doubtful: Flags
    """By payload: something is wrong, at one of the nodes or in the chain's order."""
    rows: dict[int, Rows] = field(default_factory=dict)
    """Node id to its rows under a doubtful sequence, or under none of the batch."""
    required: dict[int, Flags] = field(default_factory=dict)
    """Node id to whether it must serve a payload."""
    matched: dict[int, Flags] = field(default_factory=dict)
    """Node id to whether it serves correctly a payload that is not doubtful."""
    possibly_misplaced: int = 0
    """Rows whose envelopes may have a sequence of another batch."""


def pick(
    screened: Screened, chain: ChainRows, served: Mapping[int, Rows], wanted: Flags
) -> Screened:
    """Return what was right of some payloads, as if it had been doubtful.

    The result's ``required`` and ``matched`` are the earlier counts of these payloads.
    """
    mask = wanted & ~screened.doubtful
    order = _order(chain.sequence_ids)
    found = Screened(mask)
    for node_id, rows in served.items():
        payload = _payload_of(chain.sequence_ids, order, rows.claims)
        found.rows[node_id] = rows.where((payload >= 0) & mask[payload])
        found.required[node_id] = screened.required[node_id] & mask
        found.matched[node_id] = screened.matched[node_id] & mask
    return found


def screen(
    chain: ChainRows,
    served: Mapping[int, Rows],
    nodes: Sequence[ScreenedNode],
    *,
    with_signatures: bool,
    forbidden: Flags | None = None,
) -> Screened:
    """Compare a batch of the chain with each node's rows that claim its sequences.

    ``forbidden`` marks payloads that the contract cannot have emitted, by its own events: they are
    doubtful like those that a node serves wrong.
    """
    doubtful = chain.is_odd.copy() if forbidden is None else chain.is_odd | forbidden
    order = _order(chain.sequence_ids)
    if not chain.is_consecutive:
        doubtful[:] = True
    digests = _Digests(chain)
    found = Screened(doubtful)
    payloads: dict[int, npt.NDArray[np.int64]] = {}
    matched: dict[int, Flags] = {}
    for node in nodes:
        rows = served[node.node_id]
        payload = _payload_of(chain.sequence_ids, order, rows.claims)
        payloads[node.node_id] = payload
        is_known = payload >= 0
        times = np.bincount(payload[is_known], minlength=len(chain))
        is_right = _is_right(chain, rows, payload)
        if with_signatures:
            # Rows that are doubtful anyway are checked by the comparison.
            is_checked = is_right & ~doubtful[payload]
            is_right[is_checked] = _is_signed(rows, payload, is_checked, digests, node)
        required = chain.is_valid & _is_bound(chain, node)
        doubtful |= (times > 1) | (required & (times == 0))
        doubtful[payload[is_known & ~is_right]] = True
        found.required[node.node_id] = required
        matched[node.node_id] = (times == 1) & chain.is_valid
    for node_id, payload in payloads.items():
        needs_comparison = (payload < 0) | doubtful[payload]
        actual = _envelope_sequences(served[node_id].envelopes.filter(pa.array(needs_comparison)))
        places = _payload_of(chain.sequence_ids, order, actual)
        doubtful[places[places >= 0]] = True
        found.possibly_misplaced += int((places < 0).sum())
    for node in nodes:
        payload, rows = payloads[node.node_id], served[node.node_id]
        found.rows[node.node_id] = rows.where((payload < 0) | doubtful[payload])
        found.matched[node.node_id] = matched[node.node_id] & ~doubtful
    return found


def _envelope_sequences(envelopes: pa.BinaryArray) -> npt.NDArray[np.uint64]:
    """Return the sequences in envelopes of originator 0, whatever their rows claim."""
    found = []
    for envelope in pieces(envelopes):
        with suppress(MalformedEnvelope):
            row = parse_originator_envelope(envelope)
            if row.originator_id == BLOCKCHAIN_ORIGINATOR_ID:
                found.append(row.sequence_id)
    return np.array(found, dtype=np.uint64)


def _order(sequence_ids: npt.NDArray[np.uint64]) -> Integers:
    return np.argsort(sequence_ids, kind="stable")


def _payload_of(
    sequence_ids: npt.NDArray[np.uint64], order: Integers, claims: npt.NDArray[np.uint64]
) -> Integers:
    """Return the position of the payload that each row claims to be, or -1."""
    ordered = sequence_ids[order]
    place = np.minimum(np.searchsorted(ordered, claims), len(ordered) - 1)
    return np.where(ordered[place] == claims, order[place], -1)


def _is_right(chain: ChainRows, rows: Rows, payload: Integers) -> Flags:
    """Return which rows hold the expected bytes; the signature is checked elsewhere."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    expected = chain.expected.envelope
    if not np.array_equal(payload, np.arange(len(chain))):
        expected = expected.take(pa.array(np.maximum(payload, 0)))
    is_same = pc.equal(pc.binary_slice(rows.envelopes, 0, -SIGNATURE_LENGTH), expected)
    must_serve = chain.is_valid & ~chain.is_odd
    is_right: Flags = is_same.to_numpy(zero_copy_only=False) & (payload >= 0) & must_serve[payload]
    return is_right


def _is_bound(chain: ChainRows, node: ScreenedNode) -> Flags:
    """Return which payloads lie in the part of the chain that a node must serve."""
    blocks = chain.block_numbers
    is_answered = chain.sequence_ids <= np.uint64(node.answered_to)
    return (blocks >= node.first_block) & (blocks <= node.last_block) & is_answered


def _is_signed(
    rows: Rows, payload: Integers, is_checked: Flags, digests: _Digests, node: ScreenedNode
) -> list[bool]:
    signatures = pc.binary_slice(
        rows.envelopes.filter(pa.array(is_checked)), -SIGNATURE_LENGTH, None
    )
    pairs = zip(pieces(signatures), payload[is_checked].tolist(), strict=True)
    return [
        signature_problem(signature, digests.of(place), node.registered_key) is None
        for signature, place in pairs
    ]


class _Digests:
    """The digest that a BlockchainProof signs, computed once for all nodes."""

    def __init__(self, chain: ChainRows) -> None:
        self._chain = chain
        self._unsigned: list[bytes] | None = None
        self._found: dict[int, bytes] = {}

    def of(self, payload: int) -> bytes:
        found = self._found.get(payload)
        if found is None:
            if self._unsigned is None:
                expected = self._chain.expected
                unsigned = slices(
                    expected.envelope, expected.unsigned_start, expected.unsigned_length
                )
                self._unsigned = list(pieces(unsigned))
            transaction_hash = self._chain.transaction_hashes[payload].tobytes()
            found = keccak256(BLOCKCHAIN_LABEL + self._unsigned[payload] + transaction_hash)
            self._found[payload] = found
        return found
