"""Lines for a person: no wider than a terminal, hashes and keys cut to their first bytes."""

from __future__ import annotations

import re
import textwrap
from typing import Final

_COLUMNS: Final = 100
_SHOWN_DIGITS: Final = 8
_LONG_HEX: Final = re.compile(rf"\b(0x[0-9a-f]{{{_SHOWN_DIGITS}}})[0-9a-f]{{2,}}\b")


def short(value: bytes) -> str:
    """Write the first bytes of a hash or key, as ``index status`` does; JSON has all bytes."""
    return shortened("0x" + value.hex())


def shortened(text: str) -> str:
    """Cut each long hexadecimal number in a text."""
    return _LONG_HEX.sub(r"\1…", text)


def fit(line: str, indent: str = "") -> str:
    """Indent a line, and wrap it where it would be wider than a terminal."""
    return textwrap.fill(
        line,
        _COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def cut(line: str) -> str:
    """Cut a line where it would be wider than a terminal, if its end matters least."""
    return line if len(line) <= _COLUMNS else line[: _COLUMNS - 1] + "…"
