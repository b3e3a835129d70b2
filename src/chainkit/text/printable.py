"""Shows text from strangers so that nothing in it can rewrite a screen."""

from __future__ import annotations

import re
from typing import Final

_MOVING_BLANK: Final = re.compile("(?<= ) |^ | $")


def printable(text: str) -> str:
    r"""Return text that a terminal shows as it is: all but printable ASCII as ``\x1b``, ``\u202e``.

    Names and addresses on the chain come from strangers. Escape sequences could rewrite the
    screen, and letters of other scripts could pass for familiar ones.
    """
    return "".join(_printable_character(character) for character in text)


def with_shown_blanks(text: str) -> str:
    r"""Return text whose blanks move nothing: those at an end, or behind another, as ``\x20``.

    A run of blanks could move a stranger's words to where they look like a line of their own.
    """
    return _MOVING_BLANK.sub(r"\\x20", text)


def _printable_character(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
