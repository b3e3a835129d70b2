"""An export of three rows, and what its manifest says of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from chainkit.exports import Manifest
from chainkit.exports.tables import ENVELOPES, QUARANTINE
from support.audit.export_folders import write_folder

SCHEMAS = {"envelopes": ENVELOPES, "quarantine": QUARANTINE}
ABOUT: dict[str, Any] = {
    "kind": "node",
    "chain_id": 31337,
    "genesis_hash": "0x" + "00" * 32,
    "contracts": {"GroupMessages": "0x" + "11" * 20},
    "from_block": 4,
    "to_block": 1204331,
    "to_block_hash": "0x" + "22" * 32,
    "node_public_key": "0x04" + "33" * 64,
}
BASE_ROW = {
    "originator_id": 0,
    "sequence_id": Decimal(1),
    "block_number": 4,
    "block_hash": b"b" * 32,
    "transaction_hash": b"t" * 32,
    "transaction_index": 0,
    "log_index": 0,
    "originator_ns": 1_735_689_600_000_000_000,
    "topic": b"\0" + b"g" * 32,
    "envelope": b"envelope",
}
ROWS = [BASE_ROW | {"sequence_id": Decimal(number)} for number in (1, 2, 2**64 - 1)]


def write_export(directory: Path, **about: Any) -> Manifest:
    rows = {"envelopes": [ROWS[:2], [], ROWS[2:]], "quarantine": []}
    return write_folder(directory, SCHEMAS, rows, **ABOUT | about)


def change_manifest(directory: Path, **changes: Any) -> None:
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
