"""Two real nodes: one that was away takes what the other has originated meanwhile."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from benchmarks.network.nodes import BenchmarkNode, Registry
from benchmarks.network.rows import fill, signed_rows
from benchmarks.node.payloads import payer_envelopes, topics
from chainkit.errors import MalformedAnswer
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope, payer_digest
from chainkit.signatures import recover_public_key

_POLL_SECONDS: Final = 0.02
_MOST_SECONDS: Final = 600.0
_HIGHEST: Final = "SELECT coalesce(max(sequence_id), 0) FROM envelopes WHERE originator_id = ?"


def recover_floor(envelopes: Sequence[bytes]) -> float:
    """Return how many envelopes a second coincurve recovers both signatures of, on one thread.

    The digests are computed before: nothing but the two recovers is measured.
    """
    signed = []
    for each in envelopes:
        originated = parse_originated(each)
        paid = parse_payer_envelope(originated.envelope.payer_envelope)
        digest = originator_digest(originated.unsigned_originator_envelope)
        signed.append((originated.signature, digest))
        signed.append((paid.signature, payer_digest(paid.client_envelope, paid.target_originator)))
    began = time.perf_counter()
    for signature, digest in signed:
        recover_public_key(signature, digest)
    return len(envelopes) / (time.perf_counter() - began)


def two_nodes(stack: ExitStack, registry: Registry) -> tuple[BenchmarkNode, BenchmarkNode]:
    """Return two running nodes that the registry lists."""
    nodes = BenchmarkNode(stack, registry, "a"), BenchmarkNode(stack, registry, "b")
    for node in nodes:
        node.start()
        node.join()
    for node in nodes:
        node.wait_for("own_log_known")
    return nodes


def catch_up(here: BenchmarkNode, there: BenchmarkNode, count: int) -> tuple[float, float]:
    """Return envelopes a second of the floor, and of ``here``, which lacks so many of ``there``.

    Both run before and after. The clock starts when the first ones are stored.
    """
    for node in (here, there):
        node.stop()
    some = topics(count)
    payloads = payer_envelopes(some, there.node_id)
    rows = list(signed_rows(there.key, there.node_id, count, some, payloads))
    fill(there.database, rows)
    floor = recover_floor([row.envelope for row in rows[: count // 3]])
    there.start()
    here.start()
    return floor, _rate(here.database, there.node_id, count)


def _rate(database: Path, originator_id: int, count: int) -> float:
    """Return envelopes a second from the first that are stored to the last."""
    deadline = time.perf_counter() + _MOST_SECONDS
    began, first = 0.0, 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        while time.perf_counter() < deadline:
            [held] = connection.execute(_HIGHEST, (originator_id,)).fetchone()
            if held and not first:
                began, first = time.perf_counter(), held
            if held >= count:
                return (count - first) / (time.perf_counter() - began)
            time.sleep(_POLL_SECONDS)
    raise MalformedAnswer("catching up", f"{count} envelopes in {_MOST_SECONDS:g} s", held)
