"""`python -m benchmarks.retention.reporting FILE LAST`: a payer report, in its own process."""

from __future__ import annotations

import sys
import time
from contextlib import closing

from benchmarks.retention.logs import NODE_ID
from benchmarks.usage import own_peak_mebibytes
from chainkit.protocol.payer_reports import sign_report
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.charges import next_report


def main(path: str, last: str) -> None:
    """Print seconds until the report is signed, and how many MiB this took above the start."""
    with closing(Store.open_existing(path)) as store, store.reading() as connection:
        before, started = own_peak_mebibytes(), time.perf_counter()
        report = next_report(connection, NODE_ID, 1, int(last))
        sign_report(report, SigningKey(b"\1" * 32))
        assert report.last_id == int(last)
        print(time.perf_counter() - started, own_peak_mebibytes() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
