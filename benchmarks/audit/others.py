"""`python -m benchmarks.audit.others`: what other engines, and the parts of ours, take alone.

Each prints a line of JSON: how many rows, in how many seconds, and what it counted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.audit.exports.shape import PAYLOAD_BYTES

_SIGNATURES: Final = 20_000
"""Recovered on each core."""

_SEQUENCE: Final = (2 * 32, 32)
"""Where a payload's event holds it, in bytes from the beginning, and how many it takes."""
_PAYLOAD: Final = 4 * 32
_BEHIND_PAYLOAD: Final = 105
"""Bytes of an envelope's proof, which ends it."""
_TRANSACTION_FROM_END: Final = 101
_EVENT_BYTES: Final = 4 * 32 + PAYLOAD_BYTES + -PAYLOAD_BYTES % 32


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one way: its rows, counts and time."""

    rows: int
    counts: Mapping[str, int]
    """Its counts, summed over all nodes."""
    seconds: float | None = None
    """By its own clock, where the start of processes is no part of it."""


def scan(directory: Path) -> Done:
    """Read what an audit reads of the exports, and look at nothing."""
    import pyarrow.dataset as ds

    rows = 0
    tables = {
        directory / "chain" / "blocks": ["number", "hash", "timestamp"],
        directory / "chain" / "logs": None,
        **{path / "envelopes": ["sequence_id", "envelope"] for path in _nodes(directory)},
    }
    for path, columns in tables.items():
        for batch in ds.dataset(path).to_batches(columns=columns):
            rows += 0 if path.name == "blocks" else batch.num_rows
    return Done(rows, {})


def duckdb(directory: Path) -> Done:
    """Join each node with the chain in DuckDB; see the SQL for what is believed."""
    import duckdb as engine

    joins = "".join(_duckdb_join(number, path) for number, path in enumerate(_nodes(directory)))
    counted = ", ".join(
        f"count(*) FILTER (chain.content = node_{number}.content), "
        f"count(*) FILTER (chain.content <> node_{number}.content), "
        f"count(*) FILTER (chain.content IS NOT NULL AND node_{number}.content IS NULL), "
        f"count(*) FILTER (chain.content IS NULL AND node_{number}.content IS NOT NULL)"
        for number in range(len(_nodes(directory)))
    )
    place, width = _SEQUENCE
    query = f"""
      WITH chain AS (
        SELECT array_slice(data, {place + width - 7}, {place + width})::BIT::UBIGINT AS sequence_id,
          hash(array_slice(data, {_PAYLOAD + 1}, {_PAYLOAD + PAYLOAD_BYTES}), transaction_hash)
            AS content
        FROM read_parquet('{directory}/chain/logs/*.parquet')
        WHERE octet_length(data) = {_EVENT_BYTES}
      )
      SELECT count(chain.content), {counted} FROM chain {joins}
    """
    [row] = engine.connect().execute(query).fetchall()
    return _counted(row)


def _duckdb_join(number: int, path: Path) -> str:
    end = "octet_length(envelope)"
    return f"""
      FULL JOIN (
        SELECT sequence_id::UBIGINT AS sequence_id,
          hash(
            array_slice(envelope, {end} - {_BEHIND_PAYLOAD + PAYLOAD_BYTES - 1},
              {end} - {_BEHIND_PAYLOAD}),
            array_slice(envelope, {end} - {_TRANSACTION_FROM_END - 1},
              {end} - {_TRANSACTION_FROM_END - 32})
          ) AS content
        FROM read_parquet('{path}/envelopes/*.parquet')
      ) AS node_{number} ON chain.sequence_id = node_{number}.sequence_id
    """


def polars(directory: Path) -> Done:
    """Join each node with the chain in Polars, believing what DuckDB believes."""
    import polars as pl

    place, width = _SEQUENCE
    payload, transaction = pl.col("payload"), pl.col("transaction_hash")
    content = payload.hash(0) ^ transaction.hash(1)
    data = pl.col("data")
    joined = (
        pl.scan_parquet(directory / "chain/logs/*.parquet")
        .filter(data.bin.size() == _EVENT_BYTES)
        .select(
            sequence_id=data.bin.slice(place + width - 8, 8).bin.reinterpret(
                dtype=pl.UInt64, endianness="big"
            ),
            payload=data.bin.slice(_PAYLOAD, PAYLOAD_BYTES),
            transaction_hash=transaction,
        )
        .select("sequence_id", chain=content)
    )
    envelope = pl.col("envelope")
    counted = [pl.col("chain").count()]
    for number, path in enumerate(_nodes(directory)):
        name = f"node_{number}"
        node = (
            pl.scan_parquet(path / "envelopes/*.parquet")
            .select(
                sequence_id=pl.col("sequence_id").cast(pl.UInt64),
                payload=envelope.bin.slice(-_BEHIND_PAYLOAD - PAYLOAD_BYTES, PAYLOAD_BYTES),
                transaction_hash=envelope.bin.slice(-_TRANSACTION_FROM_END, 32),
            )
            .select("sequence_id", content.alias(name))
        )
        joined = joined.join(node, on="sequence_id", how="full", coalesce=True)
        chain, served = pl.col("chain"), pl.col(name)
        counted += [
            (chain == served).sum().alias(f"{name} matched"),
            (chain != served).sum().alias(f"{name} altered"),
            (chain.is_not_null() & served.is_null()).sum().alias(f"{name} missing"),
            (chain.is_null() & served.is_not_null()).sum().alias(f"{name} unknown"),
        ]
    [row] = joined.select(counted).collect(engine="streaming").rows()
    return _counted(row)


def _counted(row: tuple[int, ...]) -> Done:
    held, *others = row
    names = ("matched", "altered", "missing", "unknown")
    sums = {name: sum(others[index :: len(names)]) for index, name in enumerate(names)}
    served = sums["matched"] + sums["altered"] + sums["unknown"]
    return Done(held + served, sums)


def recover(directory: Path) -> Done:
    """Recover keys by coincurve alone, on all cores: no audit of signatures can be faster."""
    from chainkit.signatures import SigningKey, keccak256

    key = SigningKey(keccak256(b"benchmark"))
    digests = [keccak256(f"digest {number}".encode()) for number in range(_SIGNATURES)]
    signed = [(key.sign(digest), digest) for digest in digests]
    workers = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        # The first task of each pays for its start.
        pool.map(_recover_all, [signed[:1]] * workers, chunksize=1)
        started = time.perf_counter()
        pool.map(_recover_all, [signed] * workers, chunksize=1)
        return Done(workers * len(signed), {}, time.perf_counter() - started)


def _recover_all(signed: list[tuple[bytes, bytes]]) -> None:
    from coincurve import PublicKey

    for signature, digest in signed:
        PublicKey.from_signature_and_message(signature, digest, hasher=None)


def _nodes(directory: Path) -> list[Path]:
    return sorted(directory.glob("node-*"))


WAYS: Final[Mapping[str, Callable[[Path], Done]]] = {
    each.__name__: each for each in (scan, duckdb, polars, recover)
}


def main() -> None:
    """Do the way that is named first with the exports in the folder that is named second."""
    way, directory = sys.argv[1:]
    started = time.perf_counter()
    done = WAYS[way](Path(directory))
    seconds = time.perf_counter() - started if done.seconds is None else done.seconds
    print(json.dumps({"rows": done.rows, "seconds": seconds, "counts": done.counts}))


if __name__ == "__main__":
    main()
