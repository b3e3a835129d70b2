"""Filters of eth_getLogs, and checks for logs that an answer must not contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

from chainkit.chain.client import RpcClient
from chainkit.chain.parsing import parse_logs
from chainkit.types import Log


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Logs of these contracts, with one of these first topics."""

    addresses: tuple[bytes, ...]
    """20 bytes each; none means any."""
    topics: tuple[bytes, ...] = ()
    """32 bytes each; none means any."""
    argument: bytes = b""
    """32 bytes: the first indexed argument; empty means any."""

    def query(self, **blocks: str) -> dict[str, Any]:
        """Return the parameter of eth_getLogs for these blocks."""
        wanted = [["0x" + topic.hex() for topic in self.topics] or None]
        if self.argument:
            wanted.append(["0x" + self.argument.hex()])
        topics = {"topics": wanted} if self.topics or self.argument else {}
        addresses = {"address": ["0x" + each.hex() for each in self.addresses]}
        return blocks | (addresses if self.addresses else {}) | topics

    def takes(self, address: bytes, topics: Sequence[bytes]) -> bool:
        """Return whether a log is of one of these contracts and has these topics."""
        is_of_contract = not self.addresses or address in self.addresses
        is_event = not self.topics or (bool(topics) and topics[0] in self.topics)
        return is_of_contract and is_event and self.argument in (b"", *topics[1:2])


ANY_LOG: Final = LogFilter(())
"""Every log of the blocks."""

_PLACE: Final = attrgetter("block_number", "log_index")


def parse_wanted_logs(
    client: RpcClient, answer: Any, wanted: LogFilter, first: int, last: int
) -> list[Log]:
    """Return the logs of an answer to eth_getLogs over some blocks, both ends included, in order.

    Raises InconsistentAnswer for a log outside the range, of another contract, taken back, or
    given twice.
    """
    subject = f"logs of blocks {first} to {last}" if first != last else f"logs of block {first}"
    logs = client.parsed(subject, parse_logs, answer)
    for log in logs:
        if log.removed:
            raise client.inconsistent("log", "removed false", f"removed true at {log.place}")
    if wanted.addresses:
        for address in {log.address for log in logs}.difference(wanted.addresses):
            raise client.inconsistent("log", "a contract asked for", f"0x{address.hex()}")
    logs.sort(key=_PLACE)
    # The logs are in order, so both ends are enough: this check runs for every page.
    for log in (*logs[:1], *logs[-1:]):
        if not first <= log.block_number <= last:
            raise client.inconsistent("log", f"a block from {first} to {last}", log.place)
    places = list(map(_PLACE, logs))
    if len(set(places)) < len(places):
        twice = next(later for earlier, later in pairwise(logs) if _PLACE(earlier) == _PLACE(later))
        raise client.inconsistent(subject, "each log once", f"two at {twice.place}")
    return logs
