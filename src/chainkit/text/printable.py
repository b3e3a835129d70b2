"""Text from strangers, shown so that nothing in it can rewrite a screen."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return text that a terminal shows as it is: all but printable ASCII as ``\x1b``, ``\u202e``.

    Names and addresses on the chain come from strangers. Escape sequences could rewrite the
    screen, and letters of other scripts could pass for familiar ones.
    """
    return "".join(_printable_character(character) for character in text)


def _printable_character(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
