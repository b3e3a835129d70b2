"""One comparison: the expected value, and the found value."""

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
    """False for a value that is only shown: there is no expected value."""

    @property
    def holds(self) -> bool:
        """Whether the value is as expected, or no value was expected."""
        return not self.is_compared or self.expected == self.got


def compared(subject: str, expected: str | None, got: str) -> Comparison:
    """Compare with the expected value; without one, only show the value."""
    return Comparison(subject, expected or "", got, is_compared=expected is not None)


def code_words(code: bytes) -> str:
    """Describe code so that people can compare two descriptions."""
    return f"keccak256 0x{keccak256(code).hex()} ({len(code):,} bytes)" if code else "no code"
