"""Findings about the chain export itself: its sequence, and the contracts' own rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.administration.contradiction import LogPosition
from chainkit_jobs.administration.replay import Administration
from chainkit_jobs.administration.sequenced_log import SequencedLogReplay
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.finding_rows import finding_row


@dataclass(frozen=True, slots=True)
class SequenceBounds:
    """The required sequence of a chain export, by the counter, and its actual sequence."""

    before: int | None
    """The counter before the export's first block; None where the counter was not read."""
    first: int | None
    """The lowest sequence in the export; None where it holds none, as for ``last``."""
    last: int | None
    after: int | None
    """The counter in the export's last block; None where the counter was not read."""

    def check(self, subject: str, fields: tuple[str, str]) -> None:
        """Raise StoreError where the export holds logs beyond the counter.

        Such logs contradict the counter: such an export must accuse nobody of anything. ``fields``
        are the fields of the manifest that hold the counter before and after.
        """
        before, after = fields
        if self.before is not None and self.first is not None and self.first <= self.before:
            raise StoreError(subject, f"sequences above {self.before}, its {before}", self.first)
        if self.after is not None and self.last is not None and self.last > self.after:
            raise StoreError(subject, f"sequences up to {self.after}, its {after}", self.last)

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


def chain_findings(
    keys: DataFrame | None,
    bounds: SequenceBounds,
    originator_id: int = BLOCKCHAIN_ORIGINATOR_ID,
) -> list[dict[str, Any]]:
    """Return the findings about the chain export itself: an originator's gaps and repetitions.

    ``keys`` comes from chain_keys.chain_keys; None where all sequences are known to be consecutive,
    so that only the ends are in question.
    """
    cut = [
        _chain_row(Code.CHAIN_SEQUENCE_GAP, originator_id, Decimal(first), _missing(first, last))
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
    return finding_row(code, detail, originator_id=originator_id, sequence_id=sequence_id)


def event_findings(administration: Administration) -> list[dict[str, Any]]:
    """Return the contradictions in the contracts' own events, and where their code was changed."""
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


def payload_findings(
    forbidden: Iterable[Mapping[str, Any]], administration: Administration
) -> list[dict[str, Any]]:
    """Return the payloads that a contract's pause or bounds, by its events, forbade.

    ``forbidden`` are rows of expected.EXPECTED.
    """
    return [
        _payload_row(code, row)
        for row in forbidden
        for code in _broken_rules(administration.payload_contracts[row["contract"]], row)
    ]


def _broken_rules(contract: SequencedLogReplay, row: Mapping[str, Any]) -> Iterator[Code]:
    place = (row["block_number"], row["log_index"])
    if any(_is_between(place, first, last) for first, last in contract.pauses):
        yield Code.CHAIN_POSTED_WHILE_PAUSED
    ends = [*(each.since for each in contract.bounds[1:]), None]
    for bounds, end in zip(contract.bounds, ends, strict=True):
        is_allowed = bounds.minimum <= row["payload_size"] <= bounds.maximum
        if _is_between(place, bounds.since, end) and not is_allowed:
            yield Code.CHAIN_PAYLOAD_OUT_OF_BOUNDS


def _is_between(place: LogPosition, first: LogPosition, last: LogPosition | None) -> bool:
    return first < place and (last is None or place < last)


def _payload_row(code: Code, row: Mapping[str, Any]) -> dict[str, Any]:
    detail = f"{row['contract']}: {row['payload_size']} bytes"
    found = _chain_row(code, row["originator_id"], row["sequence_id"], detail)
    return found | {
        "block_number": row["block_number"],
        "log_index": row["log_index"],
        "transaction_hash": row["transaction_hash"],
        "expected_digest": row["digest"],
    }


def _event_row(
    code: Code, place: LogPosition, transaction_hash: bytes, detail: str
) -> dict[str, Any]:
    block_number, log_index = place
    found = finding_row(code, detail, block_number=block_number, log_index=log_index)
    return found | {"transaction_hash": transaction_hash}
