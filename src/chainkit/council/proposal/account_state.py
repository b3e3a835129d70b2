"""The council's account at one block: owners, threshold, next nonce, and its Safe's settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainkit.contracts.state import ContractState
from chainkit.council.calls.cautions import contract_caution
from chainkit.council.proposal.council import Council, SafeSettings
from chainkit.council.safe.account import (
    SafeAccount,
    check_multi_send,
    is_safe,
    multi_send_address,
    read_account,
)
from chainkit.errors import ConfigurationError
from chainkit.types import BlockReference


@dataclass(frozen=True, slots=True)
class AccountState:
    """The account as the chain has it at one block, read once; proved to be the council file's.

    The only owner of an account with a key is the account itself.
    """

    council: Council
    contracts: ContractState
    """The other reads, at the same block."""
    owners: tuple[str, ...]
    """Checksummed addresses."""
    threshold: int
    """How many owners must sign."""
    nonce: int
    """The nonce of the account's next transaction."""
    safe: SafeAccount | None
    """All that was read of a Safe; None for an account with a key."""

    @property
    def block(self) -> BlockReference:
        """The block at which the account was read."""
        return self.contracts.block

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return who else may act, such as a module of a Safe, and the owners without a key.

        A line each.
        """
        if self.safe is None:
            return ()
        contracts = (contract_caution("owner", owner) for owner in self.safe.contract_owners)
        return (*self.safe.cautions, *contracts)


def read_account_state(contracts: ContractState, council: Council) -> AccountState:
    """Read the account, and prove that it is the account of the council file.

    Raises ConfigurationError where a Safe runs code of no known release, or of another than the
    file's, its MultiSendCallOnly is another contract, or a plain account has code.
    """
    if council.safe is None:
        if contracts.code(council.account):
            expected = "an account with a key and no code, as your council file has it"
            raise ConfigurationError(f"account {council.address}", expected, "a contract")
        nonce = contracts.endpoint.transaction_count(council.address, contracts.block)
        return AccountState(council, contracts, (council.address,), 1, nonce, None)
    safe = read_account(contracts, council.account)
    if safe.version != council.safe.release:
        expected = f"Safe {council.safe.release}, as your council file has it"
        raise ConfigurationError(f"account {council.address}", expected, safe.version)
    check_multi_send(contracts, council.safe.multi_send)
    return AccountState(council, contracts, safe.owners, safe.threshold, safe.nonce, safe)


def find_account_state(contracts: ContractState, chain_id: int, account: bytes) -> AccountState:
    """Read an account without a council file: its ``council`` gives the owners plain names.

    Raises ConfigurationError where the account is a contract, but no Safe of a known release.
    """
    settings = None
    if is_safe(contracts, account):
        release = read_account(contracts, account).version
        settings = SafeSettings(release, multi_send_address(contracts, release))
    council = Council(chain_id, account, settings, {})
    found = read_account_state(contracts, council)
    if settings is None:
        return found
    names = {owner: f"owner {number}" for number, owner in enumerate(found.owners, start=1)}
    return replace(found, council=replace(council, names=names))
