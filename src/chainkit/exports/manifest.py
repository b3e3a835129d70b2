"""The manifest of an export: its fields, and the checks of them.

The manifest may come from a stranger, so each field is checked before it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final

from chainkit import __version__
from chainkit.documents.fields import read_json
from chainkit.errors import ConfigurationError, StoreError
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

MANIFEST_NAME: Final = "manifest.json"
MANIFEST_FORMAT: Final = 4
ANSWERS_FORMAT: Final = 5
"""The format of an export of a node's answers: older readers must not take it for another
format."""
CHAIN_FORMAT: Final = 6
"""The format of an export of a chain: an older reader does not know the columns of Arbitrum's
transactions and of Amsterdam's headers, and would find that hashes do not fit."""
LISTED_FORMAT: Final = 7
"""The format of an export of a chain whose record lists its payload contracts: an older reader must
not search it for our own contracts."""
LISTED_ANSWERS_FORMAT: Final = 8
"""The format of an export of a node's answers about the originators of such a record."""
_READ_FORMATS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
"""The first format had one file per table, and neither sizes nor ranges; the second had no
transactions and no whole headers in an export of kind ``chain``; the third did not state how a node
established its blocks; before the sixth, an export of kind ``chain`` had no columns of
tables.COLUMNS_SINCE_FORMAT_6."""

FILE_NAME: Final = r"[A-Za-z0-9_]+(/[0-9]+-[0-9]+)?(\.[0-9a-f]{16})?\.parquet"
"""A table in one file, or in ranges of blocks. A file that may still change has the beginning of
its digest in its name, so it is never overwritten while a manifest lists it."""

LARGEST_MANIFEST: Final = {"chain": 2**30, "node": 2**26}
"""Bytes, by the export's kind. A gigabyte is room for the ranges of ten thousand million blocks, at
ten thousand blocks each. JSON takes thirty times its size in memory: the limit for a stranger's
manifest is lower."""

_SHOWN: Final = 80
"""Characters of a wrong value that an error repeats."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of an export, its source, and the digests of its files."""

    kind: str
    """``chain`` or ``node``."""
    chain_id: int
    genesis_hash: str
    """0x and 64 hex digits."""
    contracts: Mapping[str, str]
    """Contract name to 0x address."""
    from_block: int
    to_block: int
    """The last block that is covered."""
    to_block_hash: str
    """0x and 64 hex digits: the export speaks of the chain that ends in this block."""
    files: Mapping[str, Mapping[str, Any]]
    """File name to ``rows``, ``bytes`` and ``sha256``; of a range of blocks also ``from_block``,
    ``to_block`` and ``finished``: whether the node calls the whole range final."""
    node_public_key: str | None = None
    """0x and 130 hex digits of the key that signed, in an export of kind ``node``."""
    first_block: int | None = None
    """The deployment block, in an export of kind ``chain``: no contract has a log below it."""
    first_payload_block: int | None = None
    """Likewise: no payload contract has a log below this block. None in the first format."""
    sequence_before: int | None = None
    """The contract's counter in the parent of the first block; None where the counter was not
    read."""
    sequence_after: int | None = None
    """The contract's counter in the last block; None where the counter was not read."""
    payload_contracts: Sequence[Mapping[str, Any]] | None = None
    """The contracts whose events are payloads, each as in the deployment record, in an export of
    kind ``chain``; None where the contracts are our own, which share one sequence."""
    counters: Mapping[str, Mapping[str, int | None]] | None = None
    """Originator id to its counter's number ``before`` the first block and ``after`` the last one,
    null where it was not read. An originator without a counter is left out."""
    range_blocks: int | None = None
    """Blocks per range, in an export of kind ``node``; ranges begin at its multiples."""
    final_block: int | None = None
    """The last block whose envelopes the node calls final; None where there is none."""
    last_reorg: int | None = None
    """The node's latest reorg, 0 before the first: a later one may contradict what is here."""
    source: str | None = None
    """The source of the tables of an export of kind ``chain``: ``json-rpc``, or the format of the
    imported files."""
    registry: Mapping[str, Any] | None = None
    """The registry whose history is exported, and how far: ``chain_id``, ``address``,
    ``block_number``, ``block_hash``."""
    established: Sequence[Mapping[str, Any]] | None = None
    """How the node that exports established its blocks: runs with ``from_block``, ``to_block`` and
    ``how``, which is ``receipts``, ``second endpoint`` or ``one endpoint``."""
    answered_to: int | None = None
    """The highest sequence id that the node answered, in an export of what a node answered over its
    public API; None in any other."""
    answered: Mapping[str, int] | None = None
    """The same by originator id, where the contracts are not our own: then instead of the single
    number."""

    @property
    def is_of_answers(self) -> bool:
        """Whether the export has a node's answers, and not its operator's own export."""
        return self.answered_to is not None or self.answered is not None

    @property
    def answers(self) -> Mapping[int, int]:
        """The highest sequence id that the node answered, by originator id; empty in any other."""
        if self.answered_to is not None:
            return {BLOCKCHAIN_ORIGINATOR_ID: self.answered_to}
        return {int(each): highest for each, highest in (self.answered or {}).items()}


def manifest_text(manifest: Manifest) -> str:
    """Serialize a manifest: the same one always gives the same bytes."""
    values = {name: getattr(manifest, name) for name in Manifest.__slots__}
    content = {"format": _format_of(manifest), "tool": f"chainkit {__version__}"} | {
        name: value for name, value in values.items() if value is not None
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def _format_of(manifest: Manifest) -> int:
    if manifest.kind == "chain":
        return CHAIN_FORMAT if manifest.payload_contracts is None else LISTED_FORMAT
    if not manifest.is_of_answers:
        return MANIFEST_FORMAT
    return ANSWERS_FORMAT if manifest.answered is None else LISTED_ANSWERS_FORMAT


def load_manifest(directory: Path, kind: str) -> Manifest:
    """Read an export's manifest, but not its files.

    Raises StoreError where the folder is no finished export of ``kind``, or a field has another
    form.
    """
    subject = f"export {directory}"
    if kind == "node":
        check_inside(directory, MANIFEST_NAME)
    content = _content(directory / MANIFEST_NAME, subject, LARGEST_MANIFEST[kind])
    format_ = content.pop("format", None) if isinstance(content, dict) else None
    if type(format_) is not int or format_ not in _READ_FORMATS:
        raise StoreError(subject, f"manifest format {max(_READ_FORMATS)} or older", "another")
    content.pop("tool", None)
    try:
        manifest = Manifest(**content)
    except TypeError as error:
        raise StoreError(subject, "a complete manifest", error) from error
    _check_fields(manifest, subject)
    _check_runs(manifest, subject)
    if manifest.kind != kind:
        raise StoreError(subject, f"an export of kind {kind}", manifest.kind)
    _check_ranges(manifest, subject)
    return manifest


def check_inside(directory: Path, name: str) -> None:
    """Raise StoreError where a link leads out of an export."""
    path = directory / name
    try:
        is_inside = path.resolve().is_relative_to(directory.resolve())
    except (OSError, RuntimeError) as error:
        raise StoreError(f"export file {path}", "a readable file", "links in a circle") from error
    if not is_inside:
        raise StoreError(f"export file {path}", "a file in this folder", "a link out of it")


def _content(path: Path, subject: str, most: int) -> Any:
    try:
        return read_json(path, subject, most)
    except ConfigurationError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise StoreError(subject, f"a folder with {MANIFEST_NAME}", "none") from error
        raise StoreError(subject, error.expected, error.got, MANIFEST_NAME) from error


def files_of(manifest: Manifest, table: str) -> list[str]:
    """Return the names of a table's files, in the order of their blocks."""
    # Range names are padded with zeros, so their order is that of the blocks.
    return sorted(name for name in manifest.files if table_of(name) == table)


def count_rows(manifest: Manifest, tables: Iterable[str]) -> dict[str, int]:
    """Return how many rows the files of each of these tables have."""
    return {
        table: sum(manifest.files[name]["rows"] for name in files_of(manifest, table))
        for table in tables
    }


def table_of(name: str) -> str:
    """Return the table that a file of an export belongs to."""
    return re.split(r"[/.]", name, maxsplit=1)[0]


def _is_integer(bits: int) -> Callable[[Any], bool]:
    # JSON's true is Python's 1, but no number.
    return lambda value: type(value) is int and 0 <= value < 2**bits


def _is_text(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_mapping(
    is_name: Callable[[Any], bool], is_value: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict)
        and all(is_name(name) and is_value(inner) for name, inner in value.items())
    )


def _is_record(
    fields: Mapping[str, Callable[[Any], bool]], optional: frozenset[str] = frozenset()
) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict)
        and fields.keys() - optional <= value.keys() <= fields.keys()
        and all(fields[name](inner) for name, inner in value.items())
    )


_IS_FILE: Final = _is_record(
    {
        "sha256": _is_text("[0-9a-f]{64}"),
        "rows": _is_integer(63),
        "bytes": _is_integer(63),
        "from_block": _is_integer(63),
        "to_block": _is_integer(63),
        "finished": lambda value: isinstance(value, bool),
    },
    optional=frozenset({"bytes", "from_block", "to_block", "finished"}),
)
_IS_RUN: Final = _is_record(
    {
        "from_block": _is_integer(63),
        "to_block": _is_integer(63),
        "how": _is_text("receipts|second endpoint|one endpoint"),
    }
)
_IS_CONTRACT: Final = _is_record(
    {
        "name": _is_text("[ -~]+"),
        "address": _is_text("0x[0-9a-fA-F]{40}"),
        "block": _is_integer(63),
        "originator_id": _is_integer(32),
        "event": _is_text("[ -~]+"),
        "sequence_ids": _is_text("counted|sparse"),
    }
)
_IS_COUNTED: Final = _is_record(
    dict.fromkeys(("before", "after"), lambda value: value is None or _is_integer(64)(value))
)
_IS_ORIGINATOR: Final = _is_text("0|[1-9][0-9]{0,9}")
_BLOCK: Final = ("a height from 0 below 2**63", _is_integer(63))
_HASH: Final = ("0x and 64 hex digits", _is_text("0x[0-9a-fA-F]{64}"))
_COUNTER: Final = ("an integer from 0 below 2**64", _is_integer(64))

_FIELDS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "kind": ("chain or node", _is_text("chain|node")),
    "chain_id": ("an integer from 0 below 2**63", _is_integer(63)),
    "genesis_hash": _HASH,
    "contracts": (
        "printable names, each with 0x and 40 hex digits",
        _is_mapping(_is_text("[ -~]+"), _is_text("0x[0-9a-fA-F]{40}")),
    ),
    "from_block": _BLOCK,
    "to_block": _BLOCK,
    "to_block_hash": _HASH,
    # A name with a slash would be a file elsewhere.
    "files": (
        "Parquet files, each with its sha256",
        _is_mapping(_is_text(FILE_NAME), _IS_FILE),
    ),
    "node_public_key": ("0x and 130 hex digits", _is_text("0x[0-9a-fA-F]{130}")),
    "first_block": _BLOCK,
    "first_payload_block": _BLOCK,
    "sequence_before": _COUNTER,
    "sequence_after": _COUNTER,
    "payload_contracts": (
        "payload contracts, each with the fields of a deployment record",
        lambda value: isinstance(value, list) and all(map(_IS_CONTRACT, value)),
    ),
    "counters": (
        "originator ids, each with before and after",
        _is_mapping(_IS_ORIGINATOR, _IS_COUNTED),
    ),
    "range_blocks": ("an integer from 0 below 2**63", _is_integer(63)),
    "final_block": _BLOCK,
    "last_reorg": ("an integer from 0 below 2**63", _is_integer(63)),
    "source": ("printable text", _is_text("[ -~]{1,80}")),
    "answered_to": _COUNTER,
    "answered": (
        "originator ids, each with a sequence id",
        _is_mapping(_IS_ORIGINATOR, _COUNTER[1]),
    ),
    "established": (
        "runs of blocks, each with how they were established",
        lambda value: isinstance(value, list) and all(map(_IS_RUN, value)),
    ),
    "registry": (
        "chain id, address, and the block that its history ends in",
        _is_record(
            {
                "chain_id": _is_integer(63),
                "address": _is_text("0x[0-9a-fA-F]{40}"),
                "block_number": _is_integer(63),
                "block_hash": _HASH[1],
            }
        ),
    ),
}
"""Field to its required form: an export may come from somebody whom the reader does not trust."""

_OPTIONAL: Final = frozenset(
    field.name for field in fields(Manifest) if field.default is not MISSING
)


def _check_fields(manifest: Manifest, subject: str) -> None:
    for name, (expected, is_valid) in _FIELDS.items():
        value = getattr(manifest, name)
        if not is_valid(value) and not (value is None and name in _OPTIONAL):
            shown = repr(value)
            short = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            raise StoreError(subject, f"{name}: {expected}", short, MANIFEST_NAME)


def _check_runs(manifest: Manifest, subject: str) -> None:
    """Check that runs rise, and no block is in two runs: their lengths are added up."""
    last = -1
    for run in manifest.established or ():
        if not last < run["from_block"] <= run["to_block"] <= manifest.to_block:
            expected = f"established: rising runs of blocks up to {manifest.to_block}"
            raise StoreError(subject, expected, "others", MANIFEST_NAME)
        last = run["to_block"]


def _check_ranges(manifest: Manifest, subject: str) -> None:
    """A table is in one file, or in ranges that neither overlap nor leave a hole."""
    if manifest.is_of_answers:
        return  # The files are ranges of a cursor: the rows show whether one leaves a hole.
    for table in {table_of(name) for name in manifest.files}:
        names = files_of(manifest, table)
        held = [manifest.files[name] for name in names]
        if len(held) == 1 and "/" not in names[0] and "from_block" not in held[0]:
            continue
        # A file that names no range has one that fits nowhere.
        ranges = [(file.get("from_block", -1), file.get("to_block", -1)) for file in held]
        ends = [manifest.from_block - 1, *(last for _, last in ranges)]
        starts = [*(first for first, _ in ranges), manifest.to_block + 1]
        if [end + 1 for end in ends] != starts:
            expected = f"{table}: ranges from {manifest.from_block} to {manifest.to_block}"
            raise StoreError(subject, f"{expected} without a gap", "others", MANIFEST_NAME)
