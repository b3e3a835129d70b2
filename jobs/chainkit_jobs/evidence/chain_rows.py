"""Findings about the chain export itself: its sequence, and the contracts' own rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.administration.contradiction import Place
from chainkit_jobs.administration.replay import Administration
from chainkit_jobs.administration.sequenced_log import SequencedLogReplay
from chainkit_jobs.evidence.rows import COLUMNS
from chainkit_jobs.findings import Code


@dataclass(frozen=True, slots=True)
class SequenceBounds:
    """What a chain export must hold, by the contract's counter, and what it does hold."""

    before: int | None
    """The counter before its first block; None where it was not read."""
    first: int | None
    """The lowest sequence that it holds; None where it holds none, as for ``last``."""
    last: int | None
    after: int | None
    """The counter in its last block; None where it was not read."""

    def missing_at_ends(self) -> list[tuple[int, int]]:
        """Return the first and last of each run of sequences that was cut off."""
        if self.first is None or self.last is None:
            runs = [(self.before, self.after)]
        else:
            runs = [(self.before, self.first - 1), (self.last, self.after)]
        return [
            (below + 1, last)
            for below, last in runs
            if below is not None and last is not None and below < last
        ]


def chain_findings(keys: DataFrame | None, bounds: SequenceBounds) -> list[dict[str, Any]]:
    """Return the findings about the chain export itself: its gaps and its repetitions.

    ``keys`` comes from reconcile.chain_keys; None where all sequences are known to follow each
    other, so that only the ends are in question.
    """
    cut = [
        _chain_row(
            Code.CHAIN_SEQUENCE_GAP, BLOCKCHAIN_ORIGINATOR_ID, Decimal(first), _missing(first, last)
        )
        for first, last in bounds.missing_at_ends()
    ]
    if keys is None or bounds.first is None or bounds.last is None:
        return cut
    return cut + _findings_between(keys, bounds.first, bounds.last)


def _findings_between(keys: DataFrame, first: int, last: int) -> list[dict[str, Any]]:
    is_absent = sf.col("chain_count") == 0
    follows = sf.col("before").isNotNull()
    place = sf.struct("chain.block_number", "chain.log_index")
    is_gap_start = is_absent & follows & (sf.col("sequence_id") < Decimal(last))
    is_gap_end = ~is_absent & ~follows & (sf.col("sequence_id") > Decimal(first))
    is_early = sf.coalesce((sf.col("chain_count") == 1) & (place < sf.col("before")), sf.lit(False))
    is_bad = is_gap_start | is_gap_end | (sf.col("chain_count") > 1) | is_early
    edges = keys.filter(is_bad).orderBy("originator_id", "sequence_id")
    columns = ("originator_id", "sequence_id", "chain_count", "before", "chain")
    rows = edges.select(*columns, is_early.alias("is_early")).collect()
    starts = [row for row in rows if row["chain_count"] == 0]
    ends = [row for row in rows if row["chain_count"] > 0 and row["before"] is None]
    found = [
        _chain_row(
            Code.CHAIN_SEQUENCE_GAP,
            start["originator_id"],
            start["sequence_id"],
            _missing(int(start["sequence_id"]), int(end["sequence_id"]) - 1),
        )
        for start, end in zip(starts, ends, strict=True)
    ]
    found += [_early(row) for row in rows if row["is_early"]]
    return found + [
        _chain_row(
            Code.CHAIN_SEQUENCE_REPEATED,
            row["originator_id"],
            row["sequence_id"],
            f"held {row['chain_count']} times",
        )
        for row in rows
        if row["chain_count"] > 1
    ]


def _early(row: Row) -> dict[str, Any]:
    before, chain = row["before"], row["chain"]
    detail = (
        f"the one before it stands in block {before['block_number']}, log {before['log_index']}"
    )
    found = _chain_row(Code.CHAIN_SEQUENCE_ORDER, row["originator_id"], row["sequence_id"], detail)
    return found | {
        "block_number": chain["block_number"],
        "log_index": chain["log_index"],
        "transaction_hash": bytes(chain["transaction_hash"]),
    }


def _missing(first: int, last: int) -> str:
    return f"sequence {first}" if first == last else f"sequences {first} to {last}"


def _chain_row(code: Code, originator_id: int, sequence_id: Decimal, detail: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    return row | {
        "code": code.value,
        "originator_id": originator_id,
        "sequence_id": sequence_id,
        "detail": detail,
    }


def event_findings(administration: Administration) -> list[dict[str, Any]]:
    """Return what the contracts' own events contradict, and where their code was changed."""
    rows = [
        _event_row(Code.CHAIN_EVENTS_CONTRADICT, each.place, each.transaction_hash, str(each))
        for each in administration.contradictions
    ]
    for name, contract in administration.payload_contracts.items():
        # The first one came with the proxy.
        rows += [
            _event_row(
                Code.CHAIN_CODE_UPGRADED,
                change.place,
                change.transaction_hash,
                f"{name}: implementation {change.address}",
            )
            for change in contract.implementations[1:]
        ]
    return rows


def payload_findings(expected: DataFrame, administration: Administration) -> list[dict[str, Any]]:
    """Return the payloads that a contract's pause or bounds, as its events tell them, forbade.

    ``expected`` has the columns of expected.EXPECTED.
    """
    conditions = {
        Code.CHAIN_POSTED_WHILE_PAUSED: _pauses,
        Code.CHAIN_PAYLOAD_OUT_OF_BOUNDS: _bounds_broken,
    }
    found = []
    for code, of_contract in conditions.items():
        forbidden = [
            (sf.col("contract") == name) & condition
            for name, contract in administration.payload_contracts.items()
            for condition in of_contract(contract)
        ]
        if not forbidden:
            continue
        rows = expected.filter(reduce(or_, forbidden)).orderBy("block_number", "log_index")
        found += [_payload_row(code, row) for row in rows.collect()]
    return found


def _pauses(contract: SequencedLogReplay) -> Iterator[Column]:
    for first, last in contract.pauses:
        yield _is_between(first, last)


def _bounds_broken(contract: SequencedLogReplay) -> Iterator[Column]:
    ends = [*(each.since for each in contract.bounds[1:]), None]
    for bounds, end in zip(contract.bounds, ends, strict=True):
        size = sf.col("payload_size")
        yield _is_between(bounds.since, end) & ~size.between(bounds.minimum, bounds.maximum)


def _is_between(first: Place, last: Place | None) -> Column:
    place = sf.struct("block_number", "log_index")
    condition = place > _literal(first)
    return condition if last is None else condition & (place < _literal(last))


def _literal(place: Place) -> Column:
    names = ("block_number", "log_index")
    return sf.struct(
        *(sf.lit(value).cast("long").alias(n) for n, value in zip(names, place, strict=True))
    )


def _payload_row(code: Code, row: Row) -> dict[str, Any]:
    detail = f"{row['contract']}: {row['payload_size']} bytes"
    found = _chain_row(code, row["originator_id"], row["sequence_id"], detail)
    return found | {
        "block_number": row["block_number"],
        "log_index": row["log_index"],
        "transaction_hash": bytes(row["transaction_hash"]),
        "expected_digest": bytes(row["digest"]),
    }


def _event_row(code: Code, place: Place, transaction_hash: bytes, detail: str) -> dict[str, Any]:
    block_number, log_index = place
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    return row | {
        "code": code.value,
        "block_number": block_number,
        "log_index": log_index,
        "transaction_hash": transaction_hash,
        "detail": detail,
    }
