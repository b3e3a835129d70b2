"""One thing that was looked at: what it should be, and what it is."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.signatures import keccak256


@dataclass(frozen=True, slots=True)
class Comparison:
    """One thing that was looked at, in words that are safe to print."""

    subject: str
    expected: str
    got: str
    is_compared: bool = True
    """False for what is merely told: nothing says what it must be."""

    @property
    def holds(self) -> bool:
        """Whether it is as expected, or nothing was expected."""
        return not self.is_compared or self.expected == self.got


def told(subject: str, expected: str | None, got: str) -> Comparison:
    """Compare with what is expected, or merely tell where nothing is."""
    return Comparison(subject, expected or "", got, is_compared=expected is not None)


def code_words(code: bytes) -> str:
    """Say which code this is, so that two of them can be compared by eye."""
    return f"keccak256 0x{keccak256(code).hex()} ({len(code):,} bytes)" if code else "no code"
