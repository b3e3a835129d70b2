"""The authority over the council's account at one block: owners, threshold, next nonce."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainkit.contracts.state import ContractState
from chainkit.council.proposal.council import Council, SafeSettings
from chainkit.council.safe.account import (
    check_multi_send,
    is_safe,
    multi_send_address,
    read_account,
)
from chainkit.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Authority:
    """The chain's statement of the account; one with a key is its own only owner."""

    owners: tuple[str, ...]
    """Checksummed addresses."""
    threshold: int
    """How many of them must sign."""
    nonce: int
    """The nonce of the next transaction that it can make."""
    cautions: tuple[str, ...]
    """Others than the owners who have a say, such as a module of a Safe; a line each."""


def read_authority(state: ContractState, council: Council) -> Authority:
    """Read it, and prove that the account is what the council file says.

    Raises ConfigurationError where a Safe runs code of no known release, or of another than the
    file's, its MultiSendCallOnly is another contract, or a plain account has code.
    """
    if council.safe is None:
        if state.code(council.account):
            expected = "an account with a key and no code, as your council file has it"
            raise ConfigurationError(f"account {council.address}", expected, "a contract")
        nonce = state.endpoint.transaction_count(council.address, state.block)
        return Authority((council.address,), 1, nonce, ())
    account = read_account(state, council.account)
    if account.version != council.safe.release:
        expected = f"Safe {council.safe.release}, as your council file has it"
        raise ConfigurationError(f"account {council.address}", expected, account.version)
    check_multi_send(state, council.safe.multi_send)
    return Authority(account.owners, account.threshold, account.nonce, account.cautions)


def council_of(state: ContractState, chain_id: int, account: bytes) -> tuple[Council, Authority]:
    """Read from the chain what a council file says of its account; owners get plain names.

    Raises ConfigurationError where the account is a contract, but no Safe of a known release.
    """
    settings = None
    if is_safe(state, account):
        release = read_account(state, account).version
        settings = SafeSettings(release, multi_send_address(state, release))
    council = Council(chain_id, account, settings, {})
    authority = read_authority(state, council)
    if settings:
        names = {owner: f"owner {number}" for number, owner in enumerate(authority.owners, start=1)}
        council = replace(council, names=names)
    return council, authority
