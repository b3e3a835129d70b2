"""How much each address may still ask for: buckets of tokens, and open streams. No I/O, no clock.

A bucket fills at a rate up to a burst. The cost of an answer is known only after the answer, so a
bucket may go below zero; then nothing is taken from the bucket until it holds a whole token again.

The number of buckets is bounded. A forgotten address begins with a full bucket again; an attacker
needs as many addresses as there are buckets to make the service forget an address in use.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

MOST_ADDRESSES: Final = 10_000
"""Addresses that are remembered at a time."""

_IPV6_NETWORK_BITS: Final = 64
"""A provider gives a subscriber a network of this size, with any number of addresses."""


@lru_cache(MOST_ADDRESSES)
def address_of(peer: str) -> str:
    """Return what gRPC's peer counts as: an IPv4 address, or an IPv6 network of 64 bits.

    A peer is ``ipv4:192.0.2.1:51234`` or ``ipv6:[2001:db8::1]:51234``; this machine's own address,
    and a peer that is no address, count unchanged.
    """
    kind, _, rest = peer.partition(":")
    host = unquote(rest).rpartition(":")[0].removeprefix("[").removesuffix("]")
    if kind not in ("ipv4", "ipv6"):
        return peer
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))


class Buckets:
    """A bucket of tokens for each address. Moments are seconds of a clock that only grows."""

    def __init__(self, per_second: float, burst: float, most: int = MOST_ADDRESSES) -> None:
        """Fill each bucket at a rate, up to a burst; a rate of 0 takes tokens from nobody."""
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._levels)

    def seconds_to_wait(self, address: str, now: float, tokens: float = 1.0) -> float:
        """Return the seconds until a bucket holds so many tokens; 0 for now.

        A bucket never holds more tokens than the burst.
        """
        if not self._per_second:
            return 0.0
        level = self._level(address, now)
        return 0.0 if level >= tokens else (tokens - level) / self._per_second

    def take(self, address: str, now: float, tokens: float = 1.0) -> None:
        """Take tokens; the bucket may go below zero."""
        if not self._per_second:
            return
        self._levels[address] = (self._level(address, now) - tokens, now)
        self._levels.move_to_end(address)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)

    def _level(self, address: str, now: float) -> float:
        level, moment = self._levels.get(address, (self._burst, now))
        return min(level + (now - moment) * self._per_second, self._burst)


class Held:
    """A count of what is held at the moment, in total and by address."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Begin at zero; ``most`` in total, ``most_of_one`` for one address; 0 for no limit."""
        self.most = most
        self.most_of_one = most_of_one
        self.total = 0
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many addresses hold something."""
        return len(self._by_address)

    def has_room(self, amount: int) -> bool:
        """Return whether so much more fits under the total limit."""
        return not self.most or self.total + amount <= self.most

    def has_room_for(self, address: str, amount: int) -> bool:
        """Return whether so much more fits under the limit of an address."""
        return not self.most_of_one or self._by_address[address] + amount <= self.most_of_one

    def take(self, address: str, amount: int) -> None:
        """Add to an address's amount."""
        self.total += amount
        self._by_address[address] += amount

    def give_back(self, address: str, amount: int) -> None:
        """Subtract from an address's amount; an address that holds nothing is forgotten."""
        self.total -= amount
        self._by_address[address] -= amount
        if not self._by_address[address]:
            del self._by_address[address]
