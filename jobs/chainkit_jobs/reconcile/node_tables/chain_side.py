"""The chain's side of the comparison: its tables, and the payloads that are not served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.exports import Manifest
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.node_tables.places import payload_places
from chainkit_jobs.sources import Export, read_blocks, read_logs

LOG: Final = ("block_number", "log_index")
"""By which a log of the chain is known."""


@dataclass(frozen=True, slots=True)
class ChainSide:
    """All payloads of a chain export, and those that are not served."""

    manifest: Manifest
    contracts: PayloadContracts
    places: DataFrame
    """Columns of places.payload_places."""
    quarantined: DataFrame
    """Columns of expected.EXPECTED: the payloads that must not be served, with the reason."""

    def valid_places(self) -> DataFrame:
        """Return the places of the payloads that must be served."""
        return self.places.join(self.quarantined.select(*LOG), list(LOG), "left_anti")


def chain_side(spark: SparkSession, chain: Export, expected: DataFrame) -> ChainSide:
    """Read the chain's side; of ``expected`` (columns of expected.EXPECTED) only what has a reason.

    A frame of the quarantined payloads alone does as well. Raises StoreError where the export
    lacks a table or a contract's address.
    """
    contracts = PayloadContracts(chain.contract("GroupMessages"), chain.contract("IdentityUpdates"))
    return ChainSide(
        manifest=chain.manifest,
        contracts=contracts,
        places=payload_places(read_logs(spark, chain), read_blocks(spark, chain), contracts),
        quarantined=expected.filter(sf.col("quarantine_reason").isNotNull()),
    )
