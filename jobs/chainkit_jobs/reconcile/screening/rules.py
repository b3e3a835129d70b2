"""When the contracts' own events forbade a payload: pauses, and bounds of its size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainkit_jobs.administration.contradiction import LogPosition
from chainkit_jobs.administration.replay import Administration
from chainkit_jobs.reconcile.screening.chain_rows import ChainRows
from chainkit_jobs.reconcile.screening.expected_bytes import Flags

_LAST: LogPosition = (2**63 - 1, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Rule:
    """Between two places, exclusive, a contract may emit payloads of some sizes only."""

    is_message: bool
    """Whether the contract is GroupMessages; else it is IdentityUpdates."""
    since: LogPosition
    until: LogPosition
    smallest: int
    largest: int
    """Bytes; below ``smallest`` where the contract may emit no payload."""


@dataclass(frozen=True, slots=True)
class PostingRules:
    """All rules."""

    rules: tuple[Rule, ...] = ()

    def forbidden(self, chain: ChainRows) -> Flags:
        """Return which payloads of a batch break a rule."""
        found = np.zeros(len(chain), dtype=np.bool_)
        for rule in self.rules:
            is_within = _is_after(chain, rule.since) & _is_before(chain, rule.until)
            is_its = chain.is_message if rule.is_message else ~chain.is_message
            is_allowed = (chain.payload_sizes >= rule.smallest) & (
                chain.payload_sizes <= rule.largest
            )
            found |= is_its & is_within & ~is_allowed
        return found


def posting_rules(administration: Administration | None) -> PostingRules:
    """Return the rules that follow from the contracts' events; none where they are not known."""
    rules: list[Rule] = []
    for name, contract in administration.payload_contracts.items() if administration else ():
        is_message = name == "GroupMessages"
        rules += [Rule(is_message, first, last or _LAST, 1, 0) for first, last in contract.pauses]
        ends = [*(each.since for each in contract.bounds[1:]), _LAST]
        rules += [
            Rule(is_message, each.since, end, each.minimum, each.maximum)
            for each, end in zip(contract.bounds, ends, strict=True)
        ]
    return PostingRules(tuple(rules))


def _is_after(chain: ChainRows, place: LogPosition) -> Flags:
    block, log = place
    is_later_log: Flags = (chain.block_numbers == block) & (chain.log_indexes > log)
    return (chain.block_numbers > block) | is_later_log


def _is_before(chain: ChainRows, place: LogPosition) -> Flags:
    block, log = place
    is_earlier_log: Flags = (chain.block_numbers == block) & (chain.log_indexes < log)
    return (chain.block_numbers < block) | is_earlier_log
