"""A proposal simulated from the command line: every slot that it would change, a line each."""

from __future__ import annotations

from typing import Final

from chainkit.cli.change.proposal_options import Reading
from chainkit.council.proposal.account_state import AccountState
from chainkit.council.proposal.simulation import simulate_proposal, try_proposal
from chainkit.errors import NoTracing

NO_TRACING: Final = "not shown: the endpoint cannot tell what changes, and --no-tracing was given"


def simulated(reading: Reading, account: AccountState, no_tracing: bool) -> tuple[str, ...]:
    """Simulate a proposal at the account's block and return every slot that changes, a line each.

    Raises NoTracing, which names the option, where the endpoint cannot trace and the option is not
    given.
    """
    arguments = (reading.proposal, account, reading.record)
    if no_tracing:
        try_proposal(*arguments)
        return (NO_TRACING,)
    try:
        return tuple(str(change) for change in simulate_proposal(*arguments).changes)
    except NoTracing as error:
        place = "--no-tracing goes on without it"
        raise NoTracing(error.subject, error.expected, error.got, place) from error
