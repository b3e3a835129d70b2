#!/usr/bin/env bash
# Guess: a reader of Parquet gives an exact value for a decimal of 76 digits (uint256), or an error.
# Seen: duckdb 2.0.0 reads a decimal with more than 38 digits as DOUBLE, and answers another number, without a warning.
#   polars 2.1.0 raises an error; pyarrow 23.0.1 reads what it wrote.
# Why it matters: balances, amounts and hashes as numbers lose their last digits in a query that looks right. Store
#   uint256 as 32 bytes or as text.
. "$(dirname "$0")/lib.sh"
pip_packages duckdb==2.0.0 polars==2.1.0 pyarrow==23.0.1

cat >read.py <<'E'
from decimal import Decimal

import duckdb
import polars
import pyarrow
import pyarrow.parquet

value = Decimal(10**40 + 1)
pyarrow.parquet.write_table(pyarrow.table({"wei": pyarrow.array([value], pyarrow.decimal256(76))}), "wei.parquet")
[[kind, read]] = duckdb.sql("select typeof(wei), wei from 'wei.parquet'").fetchall()
print("duckdb", kind, int(read) == value)
try:
    polars.read_parquet("wei.parquet")
except polars.exceptions.PolarsError as error:
    print("polars", type(error).__name__)
print("pyarrow", pyarrow.parquet.read_table("wei.parquet")["wei"].to_pylist() == [value])
E
expect python read.py <<'E'
duckdb DOUBLE False
polars InvalidOperationError
pyarrow True
E
