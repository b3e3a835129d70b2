"""A proposal: calls of our contracts for an account's owners to sign, and all that the hash covers.

The drafter chooses only the calls, the grounds and the nonce: the account, and the contract through
which it makes several calls, come from the reader's own council file; names and arguments from the
package's ABIs and the reader's own deployment record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from eth_utils.address import is_checksum_address, to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.council.calls import SAFE, Call, expected_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.grounds import Grounds
from chainkit.council.safe import InnerCall, SafeTransaction, signer_of
from chainkit.council.signing import recover_signer
from chainkit.documents.canonical import short
from chainkit.errors import ConfigurationError, MalformedData

MOST_CALLS: Final = 50


@dataclass(frozen=True, slots=True)
class Fees:
    """The cost that an account's own transaction may have; a Safe's is paid by the executor."""

    gas: int
    """The most gas that the transaction may use."""
    max_fee_per_gas: int
    """Wei."""
    max_priority_fee_per_gas: int
    """Wei."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Calls, their grounds, and the one transaction that makes the calls."""

    calls: tuple[Call, ...]
    grounds: Grounds
    transaction: SafeTransaction | AccountTransaction
    fees: Fees | None
    """None for a Safe."""
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    """By the signer's checksummed address, of ``hash``: 65 bytes that were checked to be his, or a
    contract's, which the chain alone can check."""

    @classmethod
    def make(
        cls,
        record: DeploymentRecord,
        council: Council,
        calls: Sequence[Call],
        grounds: Grounds,
        nonce: int,
        fees: Fees | None,
    ) -> Self:
        """Build the transaction of calls.

        Raises ConfigurationError where there is no call, the chains differ, a call changes nothing,
        a plain account is to make several calls at once, or changes of the Safe itself are mixed
        with other calls; and MalformedData where the grounds promise other changes than the calls
        make.
        """
        if council.chain_id != record.chain_id:
            expected = f"chain id {record.chain_id}, as the deployment record has it"
            raise ConfigurationError("council file", expected, council.chain_id)
        if not calls:
            raise ConfigurationError("proposal", "at least one call", "none")
        if len(calls) > MOST_CALLS:
            expected = f"at most {MOST_CALLS} calls, which a person can read"
            raise ConfigurationError("proposal", expected, f"{len(calls)} calls")
        if len({call.contract == SAFE for call in calls}) > 1:
            got = "calls of contracts beside them"
            raise ConfigurationError("proposal", "changes of the Safe itself alone", got)
        _check_promise(record, calls, grounds)
        *others, last = (InnerCall(call.target, call.calldata) for call in calls)
        inner = [*others, replace(last, calldata=last.calldata + grounds.trailer)]
        transaction: SafeTransaction | AccountTransaction
        if council.safe:
            transaction = SafeTransaction.of_calls(
                chain_id=council.chain_id,
                safe=council.account,
                nonce=nonce,
                calls=inner,
                multi_send=council.safe.multi_send,
            )
        else:
            transaction = _plain(council, inner, nonce, fees)
        return cls(tuple(calls), grounds, transaction, None if council.safe else fees)

    @property
    def hash(self) -> bytes:
        """The hash that owners sign, 32 bytes: the SafeTx hash, or the transaction's own."""
        return self.transaction.hash

    @property
    def account(self) -> str:
        """Checksummed address of the account that acts."""
        if isinstance(self.transaction, AccountTransaction):
            return to_checksum_address(self.transaction.sender)
        return to_checksum_address(self.transaction.safe)

    @property
    def changes_safe(self) -> bool:
        """Whether the calls change the Safe's own owners, and nothing else."""
        return self.calls[0].contract == SAFE

    @property
    def nonce(self) -> int:
        """The account's nonce that the proposal uses."""
        return self.transaction.nonce

    def signed(self, signature: bytes) -> Self:
        """Return the proposal with one more signature, added under its signer's address.

        Raises InvalidSignature where the signature has no signer.
        """
        is_plain = isinstance(self.transaction, AccountTransaction)
        signer = (recover_signer if is_plain else signer_of)(self.hash, signature)
        return replace(self, signatures={**self.signatures, signer: signature})


def _check_promise(record: DeploymentRecord, calls: Sequence[Call], grounds: Grounds) -> None:
    """Check that the promised changes follow from the calls: some owners read only these."""
    after = expected_change(EFFECTS, record, calls, grounds.before).after
    for name in {**after, **grounds.after}:
        wanted, got = after.get(name, "no such fact"), grounds.after.get(name, "nothing")
        if wanted != got:
            raise MalformedData(f"grounds, after, {name}", wanted, short(got))
    proxies = {call.contract for call in calls}.intersection(SEQUENCED_LOGS)
    for name in {*proxies, *grounds.runs}:
        runs = grounds.runs.get(name, "nothing")
        if name not in proxies or not is_checksum_address(runs):
            expected = f"the address that each of {', '.join(sorted(proxies)) or 'no proxy'} runs"
            raise MalformedData("grounds, runs", expected, short(f"{name}: {runs}"))


def _plain(
    council: Council, inner: Sequence[InnerCall], nonce: int, fees: Fees | None
) -> AccountTransaction:
    if len(inner) > 1:
        expected = f"one call, as {council.address} is an account with a key and no Safe"
        raise ConfigurationError("proposal", expected, f"{len(inner)} calls")
    if fees is None:
        raise MalformedData("proposal", "fees of a plain account's transaction", "none")
    (call,) = inner
    return AccountTransaction(
        chain_id=council.chain_id,
        sender=council.account,
        to=call.target,
        data=call.calldata,
        nonce=nonce,
        gas=fees.gas,
        max_fee_per_gas=fees.max_fee_per_gas,
        max_priority_fee_per_gas=fees.max_priority_fee_per_gas,
    )
