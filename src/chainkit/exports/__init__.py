"""Exports: Parquet files and the manifest that says what they hold.

Both services write and read them: they are where operator and auditor meet. A chain's export has
one file per table and appears whole or not at all, because it is written beside its destination
and renamed when complete. A node's grows: ``<table>/<from>-<to>.parquet`` per range of blocks, and
its manifest is replaced at once. Either way only what the manifest lists is the export.
"""

from chainkit.exports.files import (
    ExportWriter,
    check_digest,
    describe_file,
    flush,
    read_manifest,
    writing_to,
)
from chainkit.exports.manifest import (
    FILE_NAME,
    MANIFEST_NAME,
    Manifest,
    files_of,
    load_manifest,
    manifest_text,
    table_of,
)

__all__ = [
    "FILE_NAME",
    "MANIFEST_NAME",
    "ExportWriter",
    "Manifest",
    "check_digest",
    "describe_file",
    "files_of",
    "flush",
    "load_manifest",
    "manifest_text",
    "read_manifest",
    "table_of",
    "writing_to",
]
