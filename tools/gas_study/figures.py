"""The rows by their meaning, and Markdown tables of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from chainkit.chain.sending import TRANSACTION_GAS_CAP
from tools.gas_study.cases import GROUP_ID, random_payload
from tools.gas_study.measuring_chain import call_data, calldata_gas
from tools.gas_study.rows import Row

FLOOR_MARK: Final = "▂"
CAP_MARK: Final = "✗"

_TRANSACTION_GAS: Final = 21_000
_LOG_GAS: Final = 375
_TOPIC_GAS: Final = 375
_LOG_BYTE_GAS: Final = 8
_WORD: Final = 32


class Figures:
    """The study's rows, found by table, case, size or number of nodes, and hardfork."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Index the rows."""
        self._rows = {row.key: row for row in rows}

    def published(self, case: str, size: int, hardfork: str) -> Row:
        """Return a cell of XIP-49's own construction."""
        return self._rows["published", case, size, None, hardfork]

    def message(self, case: str, size: int, hardfork: str) -> Row:
        """Return a cell with the deployed compiler settings and a random payload."""
        return self._rows["messages", case, size, None, hardfork]

    def registry(self, case: str, nodes: int, hardfork: str) -> Row:
        """Return a cell of the registry."""
        return self._rows["registry", case, None, nodes, hardfork]

    def registry_cases(self) -> list[str]:
        """Return the registry's calls in the order of their measurement."""
        return list(dict.fromkeys(row.case for row in self._rows.values() if row.nodes))

    def parts(self, size: int, hardfork: str) -> dict[str, int]:
        """Return the parts of the gas of a later ``addMessage``; their sum is the gas.

        The first three are the protocol's prices, the others differences between rows.
        """
        bare, proxied, own, ours = (
            self.message(case, size, hardfork).gas
            for case in (
                "complete-event-later",
                "complete-event-proxy",
                "own-counter",
                "add-message",
            )
        )
        calldata = calldata_gas(
            call_data("addMessage(bytes32,bytes)", GROUP_ID, random_payload(size))
        )
        log = log_gas(size)
        return {
            "transaction": _TRANSACTION_GAS,
            "calldata, 16 gas a byte that is not zero": calldata,
            "log, 8 gas a byte": log,
            "counter, memory and decoding": bare - _TRANSACTION_GAS - calldata - log,
            "proxy, with a second copy of the payload in memory": proxied - bare,
            "pause and bounds": own - proxied,
            "shared sequence": ours - own,
        }


def log_gas(size: int) -> int:
    """Return the gas of the log of a message of ``size`` bytes: one topic, and its data.

    The data are group, offset, sequence id and length, and the payload in whole words.
    """
    data = 4 * _WORD + -(-size // _WORD) * _WORD
    return _LOG_GAS + _TOPIC_GAS + _LOG_BYTE_GAS * data


def difference(gas: int, reference: int) -> str:
    """Return how far ``gas`` is from ``reference``, in percent with two digits."""
    percent = (Decimal(gas - reference) * 100 / reference).quantize(
        Decimal("0.01"), ROUND_HALF_EVEN
    )
    return f"{percent:+} %" if percent else "0.00 %"


def cell(row: Row) -> str:
    """Return a row's gas with its marks: paid by the floor, or above Osaka's cap."""
    over_cap = row.floor_gas is not None and row.gas > TRANSACTION_GAS_CAP
    marks = FLOOR_MARK * row.floor_binds + CAP_MARK * over_cap
    return f"{row.gas:,} {marks}".rstrip()


def table(head: Sequence[str], lines: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Return a Markdown table; columns after the first ``text_columns`` are numbers."""
    rule = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))
