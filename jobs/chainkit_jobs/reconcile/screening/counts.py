"""The counts of a unit's summary, batch by batch."""

from __future__ import annotations

import numpy as np

from chainkit_jobs.reconcile.screening.chain_rows import ChainRows
from chainkit_jobs.reconcile.screening.expected_bytes import Flags, Integers
from chainkit_jobs.reconcile.screening.results import UnitSummary
from chainkit_jobs.reconcile.screening.screen import Screened


def count_payloads(summary: UnitSummary, chain: ChainRows) -> None:
    """Count a batch's payloads, and their gaps and order."""
    _count_sequences(summary, chain)
    summary.payloads += len(chain)
    summary.quarantined += len(chain) - int(chain.is_valid.sum())
    if chain.malformed and summary.malformed is None:
        first = chain.malformed[0]
        summary.malformed = {
            name: first[name] for name in ("block_number", "log_index", "malformed")
        }


def _count_sequences(summary: UnitSummary, chain: ChainRows) -> None:
    sequences = chain.sequence_ids
    lowest, highest = int(sequences.min()), int(sequences.max())
    first_place = [int(chain.block_numbers[0]), int(chain.log_indexes[0])]
    if summary.first_sequence is None:
        summary.first_sequence, summary.first_place = int(sequences[0]), first_place
        summary.lowest_sequence, summary.highest_sequence = lowest, highest
    else:
        summary.is_consecutive &= int(sequences[0]) == (summary.last_sequence or 0) + 1
        summary.is_consecutive &= first_place > (summary.last_place or [])
    summary.is_consecutive &= chain.is_consecutive and chain.is_in_order
    summary.last_sequence = int(sequences[-1])
    summary.last_place = [int(chain.block_numbers[-1]), int(chain.log_indexes[-1])]
    summary.lowest_sequence = min(lowest, summary.lowest_sequence or 0)
    summary.highest_sequence = max(highest, summary.highest_sequence or 0)


def count_nodes(
    summary: UnitSummary, chain: ChainRows, screened: Screened, is_counted: Flags
) -> None:
    """Count by node what is valid, required and matched among some payloads of a batch."""
    bins = chain.block_numbers - chain.block_numbers % summary.bin_blocks
    firsts, places = np.unique(bins, return_inverse=True)
    for node_id, count in summary.nodes.items():
        _add(count.valid, firsts, places[chain.is_valid & is_counted])
        _add(count.required, firsts, places[screened.required[node_id] & is_counted])
        _add(count.matched, firsts, places[screened.matched[node_id] & is_counted])


def _add(counts: dict[int, int], firsts: Integers, places: Integers) -> None:
    times = np.bincount(places, minlength=len(firsts))
    for first, count in zip(firsts.tolist(), times.tolist(), strict=True):
        if count:
            counts[first] = counts.get(first, 0) + count
