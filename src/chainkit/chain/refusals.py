"""The meaning of an endpoint's error, above all to ``eth_getLogs``: no standard, only words.

``tests/vectors/range_refusals.json`` holds the wordings that are known. The rules read the words,
not the codes: the same code (-32000, -32005, -32602) means different things at each provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

_LONGEST_TEXT: Final = 1000
_DEEPEST_DATA: Final = 3

_RATE: Final = re.compile(
    r"rate.?limit|request rate|over capacity|too many requests?|requests? (?:per|limit)"
    r"|call rate|calls per|\brps\b|compute units|throttl|\bquota|\bcredits?\b|capacity limit"
    r"|concurrent requests|daily request|too much load|slow down|rabbit hole"
)
_BEHIND: Final = re.compile(
    r"(?:block|header)(?: with| for| at| by)?(?: this| requested)?(?: hash| number| id)?"
    r"(?: 0x[0-9a-f]+| #?\d+)?,? (?:was |is |could |can )?not (?:be |yet )?"
    r"(?:found|available|mined)"
    r"|unknown (?:block|header)|could not find (?:block|header)|cannot be found"
    r"|blockoutofrange|block (?:number )?is out of range|block number out of range"
    r"|(?:beyond|above|after|ahead of|greater than) (?:the )?"
    r"(?:(?:current|latest|last|executed|accepted|known|chain) )+(?:head|block|tip)"
    r"|(?:beyond|above|ahead of) (?:the )?(?:head|tip)"
    r"|unfinalized data|still syncing|not (?:yet )?synced|future block|block in the future"
)
_TOO_WIDE: Final = re.compile(
    r"block range|blocks range|range.{0,12}(?:too |large|wide|big|exceed|limit|threshold|allowed)"
    r"|(?:exceed|max|allowed|limited).{0,40}\brange|ranges over|\brange \d+"
    r"|block span|blocks distance"
    r"|(?:number of|too many|limited? .{0,20}|at most .{0,12}|maximum) (?:requested )?blocks"
    r"|too many (?:results|logs|events)|more than [\d,]+ (?:results|logs|events)|max results"
    r"|(?:response|result|logs?)(?: set| data)? (?:size|count|length)|"
    r"(?:response|result).{0,12}too "
    r"|logs? matched|smaller than size|message too long|content too large|entity too large"
    r"|(?:query|request).{0,12}(?:too large|exceeds|exceeded)|git out exceeded|narrow"
)
_TOO_LONG: Final = re.compile(
    r"time[\s-]?out|timed[\s-]?out|took too long|deadline exceeded|context cancell?ed|aborted"
)

_NO_STATE: Final = re.compile(
    r"missing trie node"  # geth and what descends from it
    r"|state (?:0x)?[0-9a-f]* ?is not available"  # geth by path
    r"|state histories haven't been fully indexed|historical state unavailable"
    r"|no state available"  # Nethermind
    r"|world state unavailable"  # Besu
    r"|prun(?:ed|ing)"  # Erigon, reth, OpenEthereum
    r"|\barchiv(?:e|al)\b"  # providers that keep old state for those who pay
    r"|blockoutofrangeerror"  # anvil, which has another error for a block it does not know
)
_NO_METHOD: Final = re.compile(
    # "Not found" may also be about a block, or its receipts.
    r"(?:method|eth_\w+)\b(?:(?!\b(?:block|header|receipts?)\b).){0,80}"
    r"\b(?:not (?:found|supported|available|implemented|enabled|whitelisted|exist)"
    r"|doesn't exist|unavailable|unsupported|disabled)\b"
    r"|\b(?:unsupported|unknown|no such) (?:rpc )?method\b",
    re.DOTALL,
)
_TOO_MANY_CALLS: Final = re.compile(
    r"^batch too large$"  # geth, Nitro
    r"|batch limit \d+ exceeded"  # Erigon
    r"|batch size limit exceeded"  # Nethermind
    r"|max(?:imum)? batch size"  # Besu
    r"|batch request was too large|request is too big"  # reth
    r"|too many rpc calls in batch"  # proxyd
    r"|batch of more than \d+ requests"  # dRPC
    r"|batch(?:ed)? requests? (?:are|is) (?:not (?:supported|allowed)|disabled)"  # jsonrpsee, Hiero
)
_TOO_MANY_BYTES: Final = re.compile(
    r"response (?:is |was |body )?too (?:large|big)"  # geth, Nitro, reth, proxyd
    r"|maxbatchresponsebodysize"  # Nethermind
    r"|response size (?:is larger|should not|exceeded|limit|too large)"  # Alchemy, BNB Chain
)
_NOT_YET_INDEXED: Final = re.compile(r"transaction indexing is in progress")
_MAY_BE_POOLED: Final = re.compile(
    r"already ?(?:known|imported|exists|in (?:the )?(?:tx ?|mem)?pool)"
    r"|\bknown transaction|same hash was already"
    r"|nonce (?:is )?too low|\boldnonce\b|n't have the correct nonce"
    r"|replacement.{0,40}(?:under ?priced|not ?allowed)|not replace existing"
    r"|another transaction with same nonce"
)
_NEVER_PASSES: Final = re.compile(
    r"oversized data|floor data gas|gas limit too high|exceeds (?:the )?block gas limit"
    r"|exceeds the configured cap|tx_gas_limit_cap"
)
_NUMBER: Final = r"(\d[\d,._]*+)\s?(k)?\b(?!\s*(?:results|logs|bytes|mb|kb|events|addresses))"
_HEX_RANGE: Final = re.compile(r"\[\s*(0x[0-9a-f]{1,16})\s*,\s*(0x[0-9a-f]{1,16})\s*\]")
_DECIMAL_RANGE: Final = re.compile(r"(?:with|to) (?:the|a) range (\d{1,18})\s*-\s*(\d{1,18})")
_SUGGESTIONS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\(\d+ > {_NUMBER}\)",
        rf"limited to (?:an? )?(?:0 - )?{_NUMBER}",
        rf"up to (?:an? )?{_NUMBER} block",
        rf"at most {_NUMBER} block",
        rf"ranges over {_NUMBER} block",
        rf"greater than {_NUMBER} max",
        rf"smaller than size {_NUMBER}",
        rf"\brange(?: \d+)? exceeds(?: [a-z,]+){{0,6}}:? {_NUMBER}",
        rf"\bspan.{{0,60}}exceeds? (?:the )?limit (?:of )?{_NUMBER}",
        rf"range limit (?:of |is )?{_NUMBER}",
        # No word before the number may show another unit.
        r"\bmax(?:imum)?\b(?:(?!result|log|byte|response|size|address|topic|event|max)[^0-9]){0,60}?"
        + _NUMBER,
    )
)
_PAUSE: Final = re.compile(
    r"(?:try again|try_again|retry|backoff)[ _](?:in|after|seconds)\D{0,4}?"
    r"(\d{1,9}(?:\.\d{1,9})?)\s*(milli|ms|m)?"
)


class BatchLimit(StrEnum):
    """The limit that a batch exceeds; docs/endpoints.md lists the limits of each provider."""

    CALLS = "calls"
    """Send fewer calls in one request, from now on."""
    BYTES = "bytes"
    """Ask for less at once; the answer to a single call may exceed this limit, too."""


class RefusalKind(StrEnum):
    """The reaction to an error."""

    RANGE = "range"
    """Ask for fewer blocks."""
    RATE = "rate"
    """Ask less often."""
    BEHIND = "behind"
    """The endpoint has no such block yet: ask again, or elsewhere."""
    UNKNOWN = "unknown"
    """No words that are known: asking for fewer blocks is what may help."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An endpoint's error, understood."""

    kind: RefusalKind
    suggested_blocks: int | None = None
    """The number of blocks that the endpoint offers to answer for, if it names one; it may be
    wrong."""
    retry_after: float | None = None
    """Seconds after which the endpoint would answer, if it names them."""


def read_refusal(code: int | None, message: str, data: object = None) -> Refusal:
    """Return the meaning of an error to ``eth_getLogs``, by its code, message and data."""
    text = _text(message, data)
    if code == 429 or _RATE.search(text):
        return Refusal(RefusalKind.RATE, retry_after=_pause(text))
    if _BEHIND.search(text):
        return Refusal(RefusalKind.BEHIND)
    if _TOO_WIDE.search(text):
        return Refusal(RefusalKind.RANGE, suggested_blocks=_suggested_blocks(text))
    if _TOO_LONG.search(text):
        return Refusal(RefusalKind.RANGE)
    return Refusal(RefusalKind.UNKNOWN)


def read_rate_limit(code: int | None, message: str, data: object = None) -> Refusal | None:
    """Return the rate limit that an error to any other method reports, or None."""
    text = _text(message, data)
    if code in (-32005, 429) or _RATE.search(text):
        return Refusal(RefusalKind.RATE, retry_after=_pause(text))
    return None


def read_batch_limit(message: str, data: object = None) -> BatchLimit | None:
    """Return the limit that an error names, by its text: its codes mean other things elsewhere."""
    text = _text(message, data)
    if _TOO_MANY_CALLS.search(text):
        return BatchLimit.CALLS
    return BatchLimit.BYTES if _TOO_MANY_BYTES.search(text) else None


def tells_of_missing_state(message: str) -> bool:
    """Return whether an endpoint reports that it knows a block, but does not keep its state."""
    return _NO_STATE.search(_text(message, None)) is not None


def tells_of_missing_method(message: str) -> bool:
    """Return whether an endpoint's text, not its code, reports that it offers no such method."""
    return _NO_METHOD.search(_text(message, None)) is not None


def tells_of_unfinished_index(message: str) -> bool:
    """Return whether an endpoint does not know a transaction yet (geth; others answer null)."""
    return _NOT_YET_INDEXED.search(_text(message, None)) is not None


def tells_of_pooled_transaction(message: str) -> bool:
    """Return whether a transaction that an endpoint refuses may be in a pool, or mined, already."""
    return _MAY_BE_POOLED.search(_text(message, None)) is not None


def tells_of_impossible_transaction(message: str) -> bool:
    """Return whether the same payload is refused for ever: for its size, its gas, or its cost."""
    return _NEVER_PASSES.search(_text(message, None)) is not None


def _text(message: str, data: object) -> str:
    return " ".join([message[:_LONGEST_TEXT], *_strings(data)])[: 2 * _LONGEST_TEXT].lower()


def _strings(data: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts in the data, where Tenderly, Blast and Chainstack give the details."""
    if isinstance(data, str | int | float):
        yield str(data)[:_LONGEST_TEXT]
    elif isinstance(data, dict) and depth < _DEEPEST_DATA:
        for name, value in list(data.items())[:20]:
            yield from (f"{name} {text}" for text in _strings(value, depth + 1))


def _suggested_blocks(text: str) -> int | None:
    for pattern, base in ((_HEX_RANGE, 16), (_DECIMAL_RANGE, 10)):
        if match := pattern.search(text):
            first, last = (int(number, base) for number in match.groups())
            return last - first + 1 if first <= last else None
    for pattern in _SUGGESTIONS:
        # The lowest: some first repeat how many were asked for.
        if numbers := [_number(match) for match in pattern.finditer(text)]:
            return min(numbers) or None
    return None


def _number(match: re.Match[str]) -> int:
    digits, thousands = match.groups()
    return int(re.sub(r"[,._]", "", digits)[:18]) * (1000 if thousands else 1)


def _pause(text: str) -> float | None:
    if match := _PAUSE.search(text):
        return float(match[1]) * {"milli": 0.001, "ms": 0.001, "m": 60}.get(match[2] or "", 1)
    return None
