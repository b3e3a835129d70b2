#!/usr/bin/env bash
# Guess: a sum that does not fit its integer type is an error, or gets a wider type.
# Seen: polars 2.1.0 and pyarrow 23.0.1 wrap around in silence: 10 ether and 9 ether in wei are 553255926290448384 in
#   uint64. duckdb 2.0.0 answers the sum, as HUGEINT.
# Why it matters: each amount fits in uint64, their total does not from 18.4 ether on. Add up as decimals or in Python.
. "$(dirname "$0")/lib.sh"
pip_packages duckdb==2.0.0 polars==2.1.0 pyarrow==23.0.1

cat >sums.py <<'E'
import duckdb
import polars
import pyarrow
import pyarrow.compute

wei = pyarrow.table({"wei": pyarrow.array([10 * 10**18, 9 * 10**18], pyarrow.uint64())})
print("polars", polars.from_arrow(wei)["wei"].sum())
print("pyarrow", pyarrow.compute.sum(wei["wei"]))
print("duckdb", duckdb.sql("select sum(wei) from wei").fetchall()[0][0])
E
expect python sums.py <<'E'
polars 553255926290448384
pyarrow 553255926290448384
duckdb 19000000000000000000
E
