"""docs/evidence.md names every file of a bundle and every field in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.audit.bundles import bundle_scene
from support.project import DOCS

DOCUMENT = DOCS / "evidence.md"


def test_document__every_file_and_field__is_named(tmp_path: Path) -> None:
    scene = bundle_scene(tmp_path)
    scene.write()
    named = set(re.findall(r"`([^`\n]+)`", DOCUMENT.read_text(encoding="utf-8")))

    fields = set(json.loads((scene.bundle / "bundle.json").read_text()))
    for name in ("transactions.jsonl", "findings.jsonl"):
        fields |= set(json.loads((scene.bundle / name).read_bytes().splitlines()[0]))
    files = {path.name for path in scene.bundle.iterdir() if path.is_file()}

    assert (fields | files) - named == set()
