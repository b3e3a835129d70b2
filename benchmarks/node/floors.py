"""The floors: what libraries and database do alone, on the same bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import psycopg

from chainkit.signatures import SigningKey, keccak256, recover_public_key

_SECONDS: Final = 2.0
_ROWS_PER_COPY: Final = 1000
_TABLE: Final = """
CREATE TABLE floor (
    originator_id BIGINT NOT NULL, sequence_id BIGINT NOT NULL, originator_ns BIGINT NOT NULL,
    topic BYTEA NOT NULL, expires_at BIGINT, envelope BYTEA NOT NULL,
    PRIMARY KEY (originator_id, sequence_id)
)
"""
_INDEX: Final = "CREATE INDEX floor_by_topic ON floor (topic, originator_id, sequence_id)"
_COPY: Final = "COPY floor FROM STDIN (FORMAT BINARY)"
_PAGE: Final = """
SELECT sequence_id, envelope FROM envelopes WHERE originator_id = %s AND sequence_id > %s
ORDER BY sequence_id LIMIT %s
"""
ROWS_PER_PAGE: Final = 1000
_TYPES: Final = ("int8", "int8", "int8", "bytea", "int8", "bytea")


def sign_and_recover(payloads: Sequence[bytes], seconds: float = _SECONDS) -> float:
    """Return how many payloads a second coincurve signs and recovers, one after the other."""
    key = SigningKey(b"\x07" * 32)
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        digest = keccak256(payloads[count % len(payloads)])
        recover_public_key(key.sign(digest), digest)
        count += 1
    return count / elapsed


def copy_rows(
    url: str, topics: Sequence[bytes], envelope: bytes, seconds: float = _SECONDS
) -> float:
    """Return how many rows a second COPY stores, a thousand to a transaction.

    The table has the columns and indexes of the node's.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS floor")
        connection.execute(_TABLE)
        connection.execute(_INDEX)
        count, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            with connection.transaction(), connection.cursor().copy(_COPY) as copy:
                copy.set_types(_TYPES)
                for number in range(count + 1, count + 1 + _ROWS_PER_COPY):
                    topic = topics[number % len(topics)]
                    copy.write_row((100, number, time.time_ns(), topic, None, envelope))
            count += _ROWS_PER_COPY
        connection.execute("DROP TABLE floor")
    return count / elapsed


def read_rows(url: str, node_id: int) -> float:
    """Return how many of the node's own rows a second its driver reads, in the node's pages."""
    with psycopg.connect(url) as connection, connection.cursor(binary=True) as cursor:
        cursor.execute("SET enable_bitmapscan = off")
        last, count, began = 0, 0, time.perf_counter()
        while rows := cursor.execute(_PAGE, (node_id, last, ROWS_PER_PAGE)).fetchall():
            count += len(rows)
            last = rows[-1][0]
        return count / (time.perf_counter() - began)


def commit_seconds(url: str, commits: int = 200) -> float:
    """Return how long one durable commit of one row takes, in the median."""
    taken = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE floor_commits (number BIGINT PRIMARY KEY)")
        for number in range(commits):
            began = time.perf_counter()
            connection.execute("INSERT INTO floor_commits VALUES (%s)", (number,))
            taken.append(time.perf_counter() - began)
        connection.execute("DROP TABLE floor_commits")
    return sorted(taken)[commits // 2]
