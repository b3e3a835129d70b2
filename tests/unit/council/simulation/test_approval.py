from __future__ import annotations

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from chainkit.council.safe import InnerCall, SafeTransaction, known_contracts, parse_exec_calldata
from chainkit.council.safe.account import SafeAccount
from chainkit.council.simulation.safe_overrides import (
    EXECUTOR,
    approved_execution,
    suppose_approval,
)
from support.council.safes import owners_of

SAFE = b"\x5a" * 20
OWNERS = tuple(one.address for one in owners_of(5))
ASCENDING = sorted(OWNERS, key=lambda address: int(address, 16))
TRANSACTION = SafeTransaction.of_calls(
    chain_id=31337, safe=SAFE, nonce=4, calls=[InnerCall(b"\x11" * 20, b"\1")], multi_send=SAFE
)


def account(threshold: int, nonce: int = 4) -> SafeAccount:
    known = known_contracts()
    return SafeAccount(
        address="0x" + SAFE.hex(),
        proxy=known["SafeProxy", "1.4.1"],
        singleton=known["Safe", "1.4.1"],
        singleton_address=OWNERS[0],
        owners=OWNERS,
        threshold=threshold,
        nonce=nonce,
        modules=(),
        guard=None,
        module_guard=None,
        fallback_handler=None,
        known_handler=None,
        contract_owners=(),
    )


def approved_slot(owner: str) -> int:
    outer = keccak(encode(["address", "uint256"], [owner, 8]))
    return int.from_bytes(keccak(TRANSACTION.hash + outer), "big")


@pytest.mark.parametrize("threshold", [1, 3, 5])
def test_suppose__threshold__is_how_many_owners_approve_this_very_hash(threshold: int) -> None:
    approval = suppose_approval(TRANSACTION, account(threshold))

    chosen = ASCENDING[:threshold]
    assert approval.overrides == {(SAFE, approved_slot(owner)): 1 for owner in chosen}
    assert approval.signatures == b"".join(
        encode(["address", "bytes32"], [owner, bytes(32)]) + b"\1" for owner in chosen
    )


def test_suppose__transaction_that_waits__has_its_own_nonce() -> None:
    approval = suppose_approval(TRANSACTION, account(1, nonce=3))

    assert approval.overrides == {(SAFE, approved_slot(ASCENDING[0])): 1, (SAFE, 5): 4}


def test_suppose__nonce_used_already__is_left_as_it_is() -> None:
    approval = suppose_approval(TRANSACTION, account(1, nonce=5))

    assert list(approval.overrides) == [(SAFE, approved_slot(ASCENDING[0]))]


def test_execution__of_an_approval__is_sent_by_nobody_who_owns_the_safe() -> None:
    approval = suppose_approval(TRANSACTION, account(2))

    message = approved_execution(TRANSACTION, approval)

    assert (message.sender, message.to) == (EXECUTOR, SAFE)
    assert "0x" + EXECUTOR.hex() not in [owner.lower() for owner in OWNERS]
    executed = parse_exec_calldata(message.data)
    assert executed.of(chain_id=31337, safe=SAFE, nonce=4) == TRANSACTION
    assert executed.signatures == approval.signatures
