#!/usr/bin/env bash
# Guess: a tool that reads a Parquet file and writes it again keeps the columns' types.
# Seen: polars 2.1.0 and duckdb 2.0.0 turn FIXED_LEN_BYTE_ARRAY(32), as hashes have it, into BYTE_ARRAY; polars' note for
#   Arrow says large_binary, and DuckDB writes none. Each value is the same.
# Why it matters: a reader that compares schemas refuses a file that holds the same data. Compare the values, and take
#   each spelling of one column.
. "$(dirname "$0")/lib.sh"
pip_packages duckdb==2.0.0 polars==2.1.0 pyarrow==23.0.1

cat >rewrite.py <<'E'
import duckdb
import polars
import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(pyarrow.table({"hash": pyarrow.array([b"\1" * 32], pyarrow.binary(32))}), "pyarrow.parquet")
polars.read_parquet("pyarrow.parquet").write_parquet("polars.parquet")
duckdb.sql("copy (from 'pyarrow.parquet') to 'duckdb.parquet'")
for name in ("pyarrow", "polars", "duckdb"):
    file = pyarrow.parquet.ParquetFile(f"{name}.parquet")
    same = file.read()["hash"].to_pylist() == [b"\1" * 32]
    print(name, file.schema.column(0).physical_type, file.schema_arrow.field("hash").type, same)
E
expect python rewrite.py <<'E'
pyarrow FIXED_LEN_BYTE_ARRAY fixed_size_binary[32] True
polars BYTE_ARRAY large_binary True
duckdb BYTE_ARRAY binary True
E
