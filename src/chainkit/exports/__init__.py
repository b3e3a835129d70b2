"""Exports: Parquet files and the manifest that describes them.

Indexer and audit write and read exports: operator and auditor exchange data by them. An export
grows by ranges of blocks, ``<table>/<from>-<to>.parquet``, and its manifest is replaced in one
step: only files in the manifest belong to the export.
"""

from chainkit.exports.files import (
    check_digest,
    check_files,
    describe_file,
    flush,
    sha256_of,
    writing_to,
)
from chainkit.exports.folder import ExportFolder
from chainkit.exports.manifest import (
    FILE_NAME,
    MANIFEST_NAME,
    Manifest,
    count_rows,
    files_of,
    load_manifest,
    manifest_text,
    table_of,
)
from chainkit.exports.parquet import TableWriter
from chainkit.exports.reading import PARQUET_ERRORS, columns_problem, one_line

__all__ = [
    "FILE_NAME",
    "MANIFEST_NAME",
    "PARQUET_ERRORS",
    "ExportFolder",
    "Manifest",
    "TableWriter",
    "check_digest",
    "check_files",
    "columns_problem",
    "count_rows",
    "describe_file",
    "files_of",
    "flush",
    "load_manifest",
    "manifest_text",
    "one_line",
    "sha256_of",
    "table_of",
    "writing_to",
]
