"""How many bytes each payer may have stored, and who may be a payer at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from chainkit.protocol.publish_rules.judgement import PublishRequest
from chainkit.service.allowance import Buckets
from chainkit.service.refusals import Overloaded, Unauthenticated
from chainkit.signatures import address_of
from chainkit_node.settings import PayerLimits


class PayerLimiter:
    """Used on one thread."""

    def __init__(self, limits: PayerLimits, clock: Callable[[], float]) -> None:
        """Take the limits, and a clock in seconds that only grows."""
        self._limits = limits
        self._allowed = {each.lower() for each in limits.allowed}
        self._clock = clock
        self._bytes = Buckets(limits.bytes_per_second, limits.burst_bytes)

    def admit(self, publishes: Sequence[PublishRequest]) -> None:
        """Count what is about to be stored: all payloads of a request, or none.

        Raises Unauthenticated for a payer that is not allowed, and Overloaded above a payer's rate.
        """
        now = self._clock()
        sizes: Counter[bytes] = Counter()
        for each in publishes:
            sizes[each.payer_key] += len(each.payer_envelope)
        for key in sizes:
            self._check_allowed(key)
            if wait := self._bytes.seconds_to_wait(key.hex(), now):
                most = f"at most {self._limits.bytes_per_second} bytes a second from one payer"
                raise Overloaded("payloads", most, f"more; try again in {wait:.3f} s")
        for key, size in sizes.items():
            self._bytes.take(key.hex(), now, size)

    def _check_allowed(self, key: bytes) -> None:
        if self._allowed and (address := address_of(key)).lower() not in self._allowed:
            raise Unauthenticated("payer", "one for whom this node publishes", address)
