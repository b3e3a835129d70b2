"""All kinds, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.audit.faults.content import CONTENT
from benchmarks.audit.faults.form import FORM
from benchmarks.audit.faults.kind import Kind
from benchmarks.audit.faults.rows import ROWS
from benchmarks.audit.faults.signature import SIGNATURE

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind for kind in (*CONTENT, *FORM, *SIGNATURE, *ROWS)
}
