"""Where the project's own files are."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
TESTS: Final = ROOT / "tests"
