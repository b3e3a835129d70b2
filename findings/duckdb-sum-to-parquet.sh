#!/usr/bin/env bash
# Guess: DuckDB writes the exact sum of a BIGINT column to Parquet, as its shell shows it.
# Seen: in duckdb 2.0.0 `sum` of integers is HUGEINT, exact; `COPY … TO 'x.parquet'` writes HUGEINT as DOUBLE, so that
#   2^53 + 1 comes back as 2^53. No warning.
# Why it matters: totals of wei or gas change on the way to the file only. Cast to DECIMAL(38, 0) before you write.
. "$(dirname "$0")/lib.sh"
pip_packages duckdb==2.0.0

cat >write.py <<'E'
import duckdb

duckdb.sql("create table paid as select 9007199254740993::bigint as wei")
print("query", duckdb.sql("select sum(wei), typeof(sum(wei)) from paid").fetchall()[0])
duckdb.sql("copy (select sum(wei) as total, sum(wei)::decimal(38, 0) as cast_total from paid) to 'total.parquet'")
print("file", duckdb.sql("select total, typeof(total), cast_total from 'total.parquet'").fetchall()[0])
E
expect python write.py <<'E'
query (9007199254740993, 'HUGEINT')
file (9007199254740992.0, 'DOUBLE', Decimal('9007199254740993'))
E
