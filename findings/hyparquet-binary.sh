#!/usr/bin/env bash
# Guess: a reader of Parquet gives bytes for a binary column that has no note of text.
# Seen: hyparquet 1.33.0 decodes each BYTE_ARRAY as UTF-8 by default: a hash becomes text with U+FFFD for what is no
#   text, and cannot be restored. `utf8: false` gives bytes.
# Why it matters: hashes, keys and payloads that went through polars or DuckDB (see parquet-fixed-length.sh) are such
#   columns.
. "$(dirname "$0")/lib.sh"
pip_packages pyarrow==23.0.1
npm_packages hyparquet@1.33.0

cat >write.py <<'E'
import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(pyarrow.table({"hash": pyarrow.array([b"\x80\x01\x02\x03"], pyarrow.binary())}), "hash.parquet")
E
cat >read.mjs <<'E'
import { readFileSync } from "node:fs";
import { parquetReadObjects } from "hyparquet";

const file = new Uint8Array(readFileSync("hash.parquet")).buffer;
for (const options of [{}, { utf8: false }]) {
  const [{ hash }] = await parquetReadObjects({ file, ...options });
  console.log(JSON.stringify(options), typeof hash === "string" ? JSON.stringify(hash) : Buffer.from(hash).toString("hex"));
}
E
expect bash -c 'python write.py; node read.mjs' <<'E'
{} "�\u0001\u0002\u0003"
{"utf8":false} 80010203
E
