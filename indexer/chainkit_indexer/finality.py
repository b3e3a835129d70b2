"""Which blocks are final: a policy that the operator sets (soft finality, XIP-49 §2.1.2).

The chain may still replace blocks above the final block; the final block and those below never
change again. Ages are measured between two headers, never by the local clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

from chainkit.errors import ConfigurationError, InconsistentAnswer
from chainkit.types import BlockHeader

if TYPE_CHECKING:
    # Importing this module takes longer than a whole `--help`.
    from chainkit.chain import Endpoint

NOTHING_FINAL: Final = -1
"""The final block of a chain of which nothing is final yet."""

DEFAULT_BLOCKS: Final = 256
Tag = Literal["safe", "finalized"]
_TAGS: Final[Mapping[str, Tag]] = {"safe": "safe", "finalized": "finalized"}

_MILLISECONDS_PER_SECOND: Final = 1000
_USUAL_ADVANCE: Final = 16
"""Blocks that become final between two steps, mostly; more are searched by bisection."""


@dataclass(frozen=True, slots=True)
class FinalityPolicy:
    """Exactly one of ``blocks``, ``milliseconds`` and ``tag`` is set, and gives the final block."""

    blocks: int | None = DEFAULT_BLOCKS
    """Blocks that are this many blocks below the head are final."""
    milliseconds: int | None = None
    """Blocks that are this much older than the head, by the headers' timestamps, are final."""
    tag: Tag | None = None
    """The chain's own ``safe`` or ``finalized`` block is final."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``64`` (blocks), ``30000ms``, ``safe`` or ``finalized``.

        Raises ConfigurationError for anything else.
        """
        if (tag := _TAGS.get(text)) is not None:
            return cls(blocks=None, tag=tag)
        # A superscript is a digit to Python, but no number.
        if not (match := re.fullmatch(r"([0-9]{1,12})(ms)?", text)):
            expected = "a number of blocks, milliseconds as in 30000ms, safe or finalized"
            raise ConfigurationError("finality", expected, repr(text))
        number = int(match[1])
        return cls(blocks=None, milliseconds=number) if match[2] else cls(blocks=number)

    def __str__(self) -> str:
        """Return the policy in the form that ``parse`` reads."""
        if self.tag is not None:
            return self.tag
        return f"{self.milliseconds}ms" if self.blocks is None else str(self.blocks)

    def final_block(
        self,
        endpoint: Endpoint,
        head: BlockHeader,
        known: int,
        hash_of: Callable[[int], bytes | None] = lambda number: None,
    ) -> int:
        """Return the height of the final block of the chain that ends in ``head``.

        ``known`` is the height that was final before (NOTHING_FINAL before the first): the result
        is never lower. ``hash_of`` returns the hash of a block of the chain, if known. Raises
        InconsistentAnswer where the chain's own final block is on another chain.
        """
        if self.tag is not None:
            found = self._tagged_block(endpoint, head, hash_of)
        elif self.milliseconds is not None:
            found = _newest_older_than(endpoint, head, self.milliseconds, known)
        else:
            assert self.blocks is not None
            found = head.number - self.blocks
        return max(found, known, NOTHING_FINAL)

    def _tagged_block(
        self, endpoint: Endpoint, head: BlockHeader, hash_of: Callable[[int], bytes | None]
    ) -> int:
        assert self.tag is not None
        tagged = endpoint.tagged_header(self.tag)
        if tagged is None:
            return NOTHING_FINAL
        ours = hash_of(tagged.number)
        if ours not in (None, tagged.hash):
            subject, got = f"{self.tag} block at {endpoint.name}", f"0x{tagged.hash.hex()}"
            place = f"block {tagged.number}"
            raise InconsistentAnswer(subject, f"0x{(ours or b'').hex()}", got, place)
        # A replica may know a newer head than the one that this step follows.
        return min(tagged.number, head.number)


def _newest_older_than(endpoint: Endpoint, head: BlockHeader, milliseconds: int, known: int) -> int:
    """Return the highest block that is at least so old; timestamps never fall along a chain."""
    latest = head.timestamp - -(-milliseconds // _MILLISECONDS_PER_SECOND)
    if head.timestamp <= latest:
        return head.number
    low, high = known, head.number
    # ``low`` is final, or nothing is; ``high`` is not. Most often ``low`` moves by a few blocks.
    first = range(low + 1, min(low + 1 + _USUAL_ADVANCE, high))
    for number, header in zip(first, endpoint.headers(list(first)), strict=True):
        if header is None or header.timestamp > latest:
            high = number
            break
        low = number
    while high - low > 1:
        middle = (low + high) // 2
        header = endpoint.find_header(middle)
        if header is not None and header.timestamp <= latest:
            low = middle
        else:
            high = middle
    return low
