"""The page that converts a backup account file without a network, as set-up built it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chainkit_client.mls.program import pinned_digests, read_bundled

FOLDER: Final = Path(__file__).parent
PAGE: Final = FOLDER / "bundle" / "convert.html"
"""The bundle of client/account_page with its imports; a wheel contains it."""
PINS: Final = FOLDER / "bundle.sha256"


def read_page() -> bytes:
    """Return the page. Raises ConfigurationError unless it is the one that was built."""
    return read_bundled(PAGE, pinned_digests(PINS)[PAGE.name], "the page for backup account files")
