"""Warnings for a proposal's reader: from its calls alone, and with the chain's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chainkit.council.calls import Call, Facts
from chainkit.council.calls.cautions import (
    call_cautions,
    contract_owners_cautions,
    last_nodes_cautions,
)
from chainkit.council.calls.shared_urls import shared_url_cautions
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.proposal import Proposal

if TYPE_CHECKING:
    from chainkit.council.proposal.account_state import AccountState


def offline_cautions(proposal: Proposal, council: Council) -> tuple[str, ...]:
    """Return the cautions that need no chain, a line each, safe to print."""
    return _of_calls(proposal.calls, proposal.grounds.after, council)


def cautions_at(account: AccountState, calls: Sequence[Call], after: Facts) -> tuple[str, ...]:
    """Return all cautions at the account's block, a line each, safe to print.

    ``after`` are the facts once the calls are made.
    """
    return (
        *account.cautions,
        *_of_calls(calls, after, account.council),
        *last_nodes_cautions(calls, account.contracts),
        *shared_url_cautions(calls, account.contracts),
        *contract_owners_cautions(calls, account.contracts),
    )


def _of_calls(calls: Sequence[Call], after: Facts, council: Council) -> tuple[str, ...]:
    return call_cautions(calls, after, council.address, council.names)
