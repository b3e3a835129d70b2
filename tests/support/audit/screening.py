"""Batches of the chain's logs, as screening takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from chainkit.exports import tables
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.screening.chain_rows import LOG_COLUMNS, BlockTimes
from support.audit.audit_exports import block_row
from support.audit.identities import GROUP_MESSAGES, IDENTITY_UPDATES

CONTRACTS = PayloadContracts(GROUP_MESSAGES, IDENTITY_UPDATES)


def batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Rows of chainkit.exports.tables.LOGS as columns."""
    return pa.RecordBatch.from_pylist(list(rows), schema=tables.LOGS).select(list(LOG_COLUMNS))


def times(numbers: Iterable[int]) -> BlockTimes:
    """The times of some blocks of support.audit.audit_exports."""
    blocks = [block_row(number) for number in numbers]
    return BlockTimes(
        np.array([row["number"] for row in blocks], np.int64),
        pa.array([row["hash"] for row in blocks], pa.binary()),
        np.array([row["timestamp"] for row in blocks], np.int64),
    )
