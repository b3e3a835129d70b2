"""A node's export, changed in one place at a time, as an operator may hand it in.

``is_set_aside`` means that nothing of the node can be compared.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports import tables
from support.audit.audit_exports import hash_of, key_of, renew_digest, rewrite_table

Change = Callable[[Path], None]

TABLES: Final = ("envelopes", "quarantine", "journal", "registry_updates")
READ: Final = ("sequence_id", "envelope")
"""The columns of envelopes by which a node is compared."""


@dataclass(frozen=True)
class Hostile:
    """A change of an export, and whether it excludes the node."""

    name: str
    change: Change
    is_set_aside: bool


def hostile_exports(other: int) -> list[Hostile]:
    """Return all cases; ``other`` is the id of an honest node beside."""
    return [
        *_fields(),
        *_file_entries(),
        *_identities(other),
        *_columns(),
        *_forms(),
        *_kinds(),
        *_bytes(),
    ]


def manifest_with(**fields: Any) -> Change:
    def change(export: Path) -> None:
        path = export / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def manifest_without(field: str) -> Change:
    def change(export: Path) -> None:
        path = export / "manifest.json"
        content = json.loads(path.read_text())
        content.pop(field, None)
        path.write_text(json.dumps(content))

    return change


_WRONG: Final[dict[str, Any]] = {
    "negative": -1,
    "beyond 64 bits": 2**64,
    "fraction": 1.5,
    "true": True,
    "escape sequence": "\x1b[2J\n",
    "list": [[]],
    "deep": {"a": {"b": {}}},
}
_REQUIRED: Final = (
    *("format", "kind", "chain_id", "genesis_hash", "contracts", "from_block", "to_block"),
    *("to_block_hash", "files", "node_public_key"),
)
_OPTIONAL: Final = (
    *("first_block", "first_payload_block", "sequence_before", "sequence_after", "range_blocks"),
    *("final_block", "last_reorg", "source", "registry", "established"),
)


def _fields() -> Iterator[Hostile]:
    for field in (*_REQUIRED, *_OPTIONAL):
        for words, value in _WRONG.items():
            yield Hostile(f"{field}: {words}", manifest_with(**{field: value}), True)
        is_needed = field in _REQUIRED
        yield Hostile(f"{field}: null", manifest_with(**{field: None}), is_needed)
        yield Hostile(f"{field}: none", manifest_without(field), is_needed)
    yield Hostile("an unknown field", manifest_with(surprise=1), True)
    yield Hostile("an unknown field of escapes", manifest_with(**{"\x1b[2J\n": 1}), True)
    yield Hostile("tool: an escape sequence", manifest_with(tool="\x1b[2J"), False)


def _file_entries() -> Iterator[Hostile]:
    def entry(name: str, value: Any) -> Change:
        def change(export: Path) -> None:
            path = export / "manifest.json"
            content = json.loads(path.read_text())
            content["files"]["envelopes.parquet"][name] = value
            path.write_text(json.dumps(content))

        return change

    for name in ("rows", "bytes", "sha256", "from_block", "to_block", "finished"):
        for words, value in _WRONG.items():
            is_right = name == "finished" and value is True
            yield Hostile(f"file's {name}: {words}", entry(name, value), not is_right)
    yield Hostile("file's digest: another", entry("sha256", "0" * 64), True)
    yield Hostile("file's rows: another number", entry("rows", 10**6), False)
    yield Hostile("file's bytes: another number", entry("bytes", 2**62), False)
    yield Hostile("a file too few", _without_file("envelopes.parquet"), True)
    yield Hostile("no journal", _without_file("journal.parquet"), False)


def _without_file(name: str) -> Change:
    def change(export: Path) -> None:
        path = export / "manifest.json"
        content = json.loads(path.read_text())
        del content["files"][name]
        path.write_text(json.dumps(content))

    return change


def _identities(other: int) -> Iterator[Hostile]:
    keys = {"another node's key": other, "a key of nobody": 999}
    for words, owner in keys.items():
        key = "0x" + key_of(owner).public_key.hex()
        yield Hostile(words, manifest_with(node_public_key=key), True)
    yield Hostile("another chain", manifest_with(chain_id=1), True)
    yield Hostile("another genesis", manifest_with(genesis_hash="0x" + "00" * 32), True)
    yield Hostile("no contracts", manifest_with(contracts={}), True)
    contracts = dict.fromkeys(("GroupMessages", "IdentityUpdates"), "0x" + "55" * 20)
    yield Hostile("other contracts", manifest_with(contracts=contracts), True)
    yield Hostile("another kind", manifest_with(kind="chain"), True)
    fork = "0x" + hash_of(20, "other").hex()
    yield Hostile("another fork", manifest_with(to_block_hash=fork), True)
    yield Hostile("beyond the chain", manifest_with(to_block=21), True)
    yield Hostile("ends before it begins", manifest_with(from_block=10**9), True)
    yield Hostile("begins late", manifest_with(from_block=12), False)
    end = {"to_block": 14, "to_block_hash": "0x" + hash_of(14).hex()}
    yield Hostile("ends early", manifest_with(**end), False)


def _rewritten(table: str, change: Callable[[pa.Table], pa.Table], **options: Any) -> Change:
    def damage(export: Path) -> None:
        name = f"{table}.parquet"
        changed = change(pq.read_table(export / name))
        rewrite_table(export, name, changed, **options)

    return damage


def _columns() -> Iterator[Hostile]:
    for table in TABLES:
        schema = {
            "envelopes": tables.ENVELOPES,
            "quarantine": tables.QUARANTINE,
            "journal": tables.JOURNAL,
            "registry_updates": tables.REGISTRY_UPDATES,
        }[table]
        for field in schema:
            is_read = table == "envelopes" and field.name in READ
            for words, change in _column_changes(field).items():
                name = f"{table}.{field.name}: {words}"
                yield Hostile(name, _rewritten(table, change), is_read and words != "nullable")


def _column_changes(field: pa.Field) -> dict[str, Callable[[pa.Table], pa.Table]]:
    name = field.name

    def replaced(type_: pa.DataType, table: pa.Table) -> pa.Table:
        values = pa.array([None] * len(table), type_)
        return table.set_column(table.schema.names.index(name), name, values)

    other = pa.string() if field.type != pa.string() else pa.int64()
    return {
        "none": lambda table: table.drop_columns([name]),
        "capitals": lambda table: table.rename_columns({name: name.title()}),
        "twice": lambda table: table.append_column(name.upper(), table[name]),
        "another type": lambda table: replaced(other, table),
        "nullable": lambda table: table.cast(
            pa.schema([each.with_nullable(True) for each in table.schema])
        ),
    }


def _forms() -> Iterator[Hostile]:
    def same(table: pa.Table) -> pa.Table:
        return table

    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        is_strange = codec in ("brotli", "lz4")
        change = _rewritten("envelopes", same, compression=codec)
        yield Hostile(f"compressed by {codec}", change, is_strange)
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        options = {"use_dictionary": False, "column_encoding": {"envelope": encoding}}
        change = _rewritten("envelopes", same, **options)
        yield Hostile(f"encoded by {encoding}", change, False)
    split = {"use_dictionary": False, "column_encoding": {"sequence_id": "BYTE_STREAM_SPLIT"}}
    yield Hostile("encoded by BYTE_STREAM_SPLIT", _rewritten("envelopes", same, **split), False)
    for words, options in {
        "one row in a group": {"row_group_size": 1},
        "no statistics": {"write_statistics": False},
        "second page version": {"data_page_version": "2.0"},
        "no Arrow schema": {"store_schema": False},
    }.items():
        yield Hostile(words, _rewritten("envelopes", same, **options), False)
    yield Hostile("no rows", _rewritten("envelopes", lambda table: table.slice(0, 0)), False)
    yield Hostile(
        "rows backwards", _rewritten("envelopes", lambda t: t.take([*range(7)][::-1])), False
    )


def elsewhere(path: Path) -> None:
    target = path.parent.parent / f"elsewhere-{path.name}"
    target.write_bytes(path.read_bytes())
    _linked(path, target)


def _linked(path: Path, target: Path | str) -> None:
    path.unlink()
    path.symlink_to(target)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _kinds() -> Iterator[Hostile]:
    kinds: dict[str, Change] = {
        "a pipe": _pipe,
        "a link to a device": lambda path: _linked(path, "/dev/zero"),
        "a link to nothing": lambda path: _linked(path, "nothing"),
        "a link to itself": lambda path: _linked(path, path.name),
        "a link out of the folder": elsewhere,
        "a folder": _folder,
        "a hole": lambda path: os.truncate(path, 2**40),
        "nothing": Path.unlink,
    }
    for file in ("manifest.json", *(f"{table}.parquet" for table in TABLES)):
        for words, make in kinds.items():
            yield Hostile(f"{file} is {words}", lambda export, f=file, m=make: m(export / f), True)
    yield Hostile("an empty folder", _emptied, True)


def _emptied(export: Path) -> None:
    shutil.rmtree(export)
    export.mkdir()


def _bytes() -> Iterator[Hostile]:
    changes: dict[str, Callable[[bytes], bytes]] = {
        "empty": lambda content: b"",
        "cut": lambda content: content[: len(content) // 2],
        "no text": lambda content: b"\xff" * 64,
        "numbers without end": lambda content: b'{"chain_id": ' + b"9" * 5000 + b"}",
        "nested without end": lambda content: b"[" * 100_000,
    }
    for words, change in changes.items():
        yield Hostile(f"manifest: {words}", _overwritten("manifest.json", change), True)
    yield Hostile("envelopes: a byte of the footer", _overwritten("envelopes.parquet", _flip), True)
    zeros = _proved(lambda content: content[:4] + bytes(200) + content[204:])
    yield Hostile("envelopes: pages of zeros", zeros, True)
    yield Hostile("envelopes: no Parquet", _proved(lambda content: b"none"), True)
    yield Hostile("envelopes: names that are no text", _proved(_renamed), True)


def _renamed(content: bytes) -> bytes:
    return content.replace(b"envelope", b"envel\xff\x1be")


def _flip(content: bytes) -> bytes:
    return content[:-20] + bytes([content[-20] ^ 1]) + content[-19:]


def _overwritten(name: str, change: Callable[[bytes], bytes]) -> Change:
    def damage(export: Path) -> None:
        (export / name).write_bytes(change((export / name).read_bytes()))

    return damage


def _proved(change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of the envelopes, and the digest in the manifest."""

    def damage(export: Path) -> None:
        _overwritten("envelopes.parquet", change)(export)
        renew_digest(export, "envelopes.parquet")

    return damage
