"""An import of what the real cryo and ethereum-etl wrote of a geth at Amsterdam.

There, a block counts its gas in another way than its receipts (EIP-7778, EIP-8037).
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from chainkit.contracts.deployment import read_deployment_record
from chainkit_jobs.adapters.adapter import Adapter
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.importing import Imported, import_chain
from support.audit.imports import FIXTURES, read_chain
from support.seeds import only_in_soak

AMSTERDAM = FIXTURES / "amsterdam"
FIRST, LAST = 44, 48


def imported(spark: SparkSession, adapter: Adapter, source: Path, out: Path) -> Imported:
    record = read_deployment_record(AMSTERDAM / "deployment.json")
    return import_chain(spark, adapter, source, record, out, 10, from_block=FIRST)


@only_in_soak
def test_import__blocks_of_amsterdam__are_whole(spark: SparkSession, tmp_path: Path) -> None:
    result = imported(spark, EthereumEtl(), AMSTERDAM / "ethereum-etl", tmp_path / "chain")

    assert result.faults == ()
    rows = read_chain(tmp_path / "chain")
    used = dict.fromkeys(range(FIRST, LAST + 1), 0)
    for receipt in rows["receipts"]:
        used[receipt["block_number"]] += receipt["gas_used"]
    counted = {block["number"]: block["gas_used"] for block in rows["blocks"]}
    # The headers count less (new state), more (a refund), as much, and nothing.
    assert [counted[each] - used[each] for each in used] == [-24_900, -201_860, 27_214, 0, 0]


def test_import__last_transactions_of_blocks_of_amsterdam_are_missing__these_are_half_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(AMSTERDAM / "cryo", tmp_path / "source"))
    [path] = source.glob("*__transactions__*")
    content = pq.read_table(path)
    kept = [
        row
        for row in content.to_pylist()
        if (row["block_number"], row["transaction_index"]) not in {(45, 2), (47, 1)}
    ]
    pq.write_table(pa.Table.from_pylist(kept, content.schema), path)

    [fault] = imported(spark, Cryo(), source, tmp_path / "chain").faults

    # Blocks 44 and 46 are whole.
    assert (fault.code, fault.table, fault.count, fault.block) == (
        *("HALF_WRITTEN", "transactions"),
        *(2, 45),
    )
    assert fault.expected == "gas used of all receipts as in the header, 1260720"
