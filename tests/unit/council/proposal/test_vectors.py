"""The same file is read by tests/forge: Solidity makes the same hashes of the same proposals."""

from dataclasses import replace
from typing import Any

import pytest
from eth_utils.abi import function_signature_to_4byte_selector

from chainkit.contracts.deployment import DeployedContract
from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import FUNCTIONS, OWNER_FUNCTIONS, SAFE, Call
from chainkit.council.proposal import (
    Grounds,
    Proposal,
    parse_proposal,
    proposal_bytes,
    split_trailer,
)
from chainkit.council.safe import SafeTransaction
from support.council import proposals
from support.vectors import case_name, from_hex, load

VECTORS = load("proposals")
CASES = VECTORS["proposals"]
ACCOUNTS = {name: from_hex(address) for name, address in VECTORS["accounts"].items()}


def placed(contract: DeployedContract) -> DeployedContract:
    return replace(contract, address=ACCOUNTS[contract.name])


RECORD = replace(
    proposals.RECORD,
    chain_id=VECTORS["chainId"],
    node_registry=placed(proposals.RECORD.node_registry),
    group_messages=placed(proposals.RECORD.group_messages),
    identity_updates=placed(proposals.RECORD.identity_updates),
)
assert proposals.SAFE.safe is not None
COUNCIL = replace(
    proposals.SAFE,
    chain_id=VECTORS["chainId"],
    account=ACCOUNTS["safe"],
    safe=replace(proposals.SAFE.safe, multi_send=ACCOUNTS["multiSend"]),
)


def proposal_of(case: dict[str, Any]) -> Proposal:
    calls = [
        Call.read(RECORD, from_hex(call["target"]), from_hex(call["calldata"]))
        for call in case["calls"]
    ]
    grounds = Grounds.parse(case["grounds"], "grounds")
    return Proposal.make(RECORD, COUNCIL, calls, grounds, int(case["nonce"]), None)


def test_functions__of_the_vectors__are_all_that_a_council_calls() -> None:
    found: dict[str, list[str]] = {}
    for vector in VECTORS["functions"]:
        name = vector["signature"].split("(")[0]
        found.setdefault(vector["contract"], []).append(name)
        selector = shipped_interface(vector["contract"]).selector(name)
        assert selector == from_hex(vector["selector"])
        assert selector == function_signature_to_4byte_selector(vector["signature"])

    expected = {**FUNCTIONS, SAFE: OWNER_FUNCTIONS}
    assert found == {name: list(functions) for name, functions in expected.items()}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_call__of_a_vector__is_the_function_that_was_meant(case: dict[str, Any]) -> None:
    for call, vector in zip(proposal_of(case).calls, case["calls"], strict=True):
        assert call.contract == vector["contract"]
        assert call.function == vector["signature"].split("(")[0]
        again = Call.make(RECORD, call.contract, call.function, *call.arguments.values())
        assert again.calldata == from_hex(vector["calldata"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_grounds__of_a_vector__have_its_digest_and_trailer(case: dict[str, Any]) -> None:
    grounds = Grounds.parse(case["grounds"], "grounds")

    assert grounds.digest == from_hex(case["digest"])
    assert grounds.trailer == from_hex(case["trailer"])
    _, trailer = split_trailer(from_hex(case["trailer"]))
    assert trailer is not None
    assert (trailer.expires, trailer.digest) == (case["expires"], from_hex(case["digest"]))


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_proposal__of_a_vector__has_its_hash(case: dict[str, Any]) -> None:
    proposal = proposal_of(case)

    transaction = proposal.transaction
    assert isinstance(transaction, SafeTransaction)
    assert (transaction.to, transaction.data) == (from_hex(case["to"]), from_hex(case["data"]))
    assert transaction.operation == case["operation"]
    assert proposal.hash == from_hex(case["hash"])
    assert parse_proposal(proposal_bytes(proposal), "proposal", RECORD, COUNCIL) == proposal
