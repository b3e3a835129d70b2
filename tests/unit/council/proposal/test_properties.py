"""Rules hold for every proposal of a council: any calls, arguments, grounds, nonce and signers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chainkit.council.proposal import (
    Council,
    Evidence,
    Proposal,
    SafeSettings,
    collect,
    parse_proposal,
    proposal_bytes,
    sign_proposal,
    split_trailer,
)
from chainkit.council.safe import SafeTransaction, pack, parse_exec_calldata
from chainkit.errors import ChainkitError
from support.council.any_proposals import (
    Step,
    contract_steps,
    grounds_of,
    plain_proposals,
    safe_proposals,
    signer_numbers,
    steps,
)
from support.council.proposals import OWNERS, PLAIN, RECORD, SAFE, signer
from support.council.safes import unpack

assert SAFE.safe is not None
MULTI_SEND = SAFE.safe.multi_send


def named(copies: Sequence[Proposal]) -> dict[str, Proposal]:
    return {f"copy {number}": copy for number, copy in enumerate(copies)}


def parse(data: bytes, proposal: Proposal, council: Council = SAFE) -> Proposal:
    return parse_proposal(data, "proposal", RECORD, council, proposal.changes_safe)


def made_again(proposal: Proposal, **changes: Any) -> Proposal:
    """The same proposal, made with other arguments."""
    arguments: dict[str, Any] = {
        "record": RECORD,
        "council": SAFE,
        "calls": proposal.calls,
        "grounds": proposal.grounds,
        "nonce": proposal.nonce,
        "fees": proposal.fees,
    }
    return Proposal.make(**arguments | changes)


def safe_transaction(proposal: Proposal) -> SafeTransaction:
    assert isinstance(proposal.transaction, SafeTransaction)
    return proposal.transaction


def signer_signature(proposal: Proposal, number: int) -> bytes:
    (signature,) = sign_proposal(proposal, SAFE, signer(number)).signatures.values()
    return signature


# ------------------------------------------------------------------------ the file


@given(safe_proposals(), signer_numbers)
def test_parse__bytes_of_any_proposal__are_that_proposal(
    proposal: Proposal, numbers: list[int]
) -> None:
    for number in numbers:
        proposal = sign_proposal(proposal, SAFE, signer(number))

    found = parse(proposal_bytes(proposal), proposal)

    assert found == proposal
    assert found.hash == proposal.hash
    assert proposal_bytes(found) == proposal_bytes(proposal)


@given(plain_proposals(), st.booleans())
def test_parse__bytes_of_any_plain_proposal__are_that_proposal(
    proposal: Proposal, is_signed: bool
) -> None:
    if is_signed:
        proposal = sign_proposal(proposal, PLAIN, signer(0))

    assert parse(proposal_bytes(proposal), proposal, PLAIN) == proposal


@given(safe_proposals(), signer_numbers, st.data())
def test_parse__any_one_byte_changed__is_refused(
    proposal: Proposal, numbers: list[int], data: st.DataObject
) -> None:
    for number in numbers:
        proposal = sign_proposal(proposal, SAFE, signer(number))
    content = bytearray(proposal_bytes(proposal))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))

    with pytest.raises(ChainkitError):
        parse(bytes(content), proposal)


@given(safe_proposals(), st.data())
def test_parse__bytes_cut_out_or_twice__is_refused(proposal: Proposal, data: st.DataObject) -> None:
    content = proposal_bytes(proposal)
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start + 1, len(content)))
    middle = data.draw(st.sampled_from([b"", content[start:end] * 2]))

    with pytest.raises(ChainkitError):
        parse(content[:start] + middle + content[end:], proposal)


# ------------------------------------------------------------------------ the hash


@given(safe_proposals())
def test_hash__made_again_of_the_same__is_the_same(proposal: Proposal) -> None:
    assert made_again(proposal) == proposal
    assert made_again(proposal).hash == proposal.hash


@given(safe_proposals(), safe_proposals())
def test_hash__two_proposals__is_the_same_only_if_all_of_them_is(
    one: Proposal, other: Proposal
) -> None:
    assert (one.hash == other.hash) == (one == other)


@given(safe_proposals(), st.data())
def test_hash__any_one_of_the_grounds_changed__is_another(
    proposal: Proposal, data: st.DataObject
) -> None:
    grounds = proposal.grounds
    changes: dict[str, Any] = {
        "reason": grounds.reason[:-1] + ("y" if grounds.reason[-1] == "x" else "x"),
        "evidence": (*grounds.evidence, Evidence("one more", "ab" * 32)),
        "runs": dict.fromkeys(grounds.runs, "0x" + "9" * 40),
        "expires": grounds.expires ^ 1,
    }
    name = data.draw(st.sampled_from(sorted(changes)))
    assume(name != "runs" or grounds.runs)

    changed = made_again(proposal, grounds=replace(grounds, **{name: changes[name]}))

    assert changed.hash != proposal.hash


@given(safe_proposals(), st.data())
def test_hash__another_nonce_safe_or_chain__is_another(
    proposal: Proposal, data: st.DataObject
) -> None:
    changes: list[dict[str, Any]] = [
        {"nonce": proposal.nonce + 1},
        {"council": replace(SAFE, account=b"\x5b" * 20)},
        {"council": replace(SAFE, chain_id=1), "record": replace(RECORD, chain_id=1)},
    ]

    changed = made_again(proposal, **data.draw(st.sampled_from(changes)))

    assert changed.hash != proposal.hash


@given(contract_steps(), st.data())
def test_hash__calls_in_another_order__is_another(chosen: list[Step], data: st.DataObject) -> None:
    assume(len(chosen) > 1)
    proposal = Proposal.make(
        RECORD, SAFE, [step.call for step in chosen], data.draw(grounds_of(chosen)), 0, None
    )
    calls = data.draw(st.permutations(proposal.calls))

    changed = made_again(proposal, calls=calls)

    assert (changed.hash == proposal.hash) == (tuple(calls) == proposal.calls)


@given(safe_proposals(), steps)
def test_make__promise_of_other_calls__is_refused(proposal: Proposal, step: Step) -> None:
    assume(step.call not in proposal.calls)
    calls = [step.call] if proposal.changes_safe else [*proposal.calls, step.call]

    with pytest.raises(ChainkitError):
        made_again(proposal, calls=calls)


@given(safe_proposals(), st.data())
def test_make__one_promise_changed__is_refused(proposal: Proposal, data: st.DataObject) -> None:
    after = dict(proposal.grounds.after)
    name = data.draw(st.sampled_from(sorted(after)))
    grounds = replace(proposal.grounds, after=after | {name: after[name] + "x"})

    with pytest.raises(ChainkitError):
        made_again(proposal, grounds=grounds)


# ----------------------------------------------------------------- what is executed


@given(safe_proposals(), signer_numbers)
def test_execution__of_any_proposal__makes_its_calls_with_the_trailer_behind_the_last(
    proposal: Proposal, numbers: list[int]
) -> None:
    transaction = safe_transaction(proposal)
    packed = pack(proposal.hash, [signer_signature(proposal, number) for number in numbers])

    execution = parse_exec_calldata(transaction.exec_calldata(packed))

    found = execution.of(chain_id=SAFE.chain_id, safe=SAFE.account, nonce=proposal.nonce)
    assert found.hash == proposal.hash
    inner = found.inner_calls(MULTI_SEND)
    assert [call.target for call in inner] == [call.target for call in proposal.calls]
    *others, (last, trailer) = [split_trailer(call.calldata) for call in inner]
    assert [*(data for data, _ in others), last] == [call.calldata for call in proposal.calls]
    assert trailer is not None
    assert trailer.digest == proposal.grounds.digest
    assert trailer.expires == proposal.grounds.expires
    assert execution.signatures == packed


@given(contract_steps(), st.data())
def test_transaction__another_multi_send__is_another_for_a_batch_only(
    chosen: list[Step], data: st.DataObject
) -> None:
    calls = [step.call for step in chosen]
    proposal = Proposal.make(RECORD, SAFE, calls, data.draw(grounds_of(chosen)), 0, None)
    council = replace(SAFE, safe=SafeSettings("1.4.1", b"\x97" * 20))

    other = made_again(proposal, council=council)

    assert (other.hash != proposal.hash) == (len(calls) > 1)


# -------------------------------------------------------------------- the signatures


@given(safe_proposals(), signer_numbers, st.data())
def test_collect__owners_in_any_order__gives_the_same_file_and_the_safes_order(
    proposal: Proposal, numbers: list[int], data: st.DataObject
) -> None:
    copies = [sign_proposal(proposal, SAFE, signer(number)) for number in numbers]

    found = collect(proposal, SAFE, named(copies))
    again = collect(proposal, SAFE, named(data.draw(st.permutations(copies))))

    assert proposal_bytes(again) == proposal_bytes(found)
    assert found.signatures.keys() == {OWNERS[number] for number in numbers}
    ascending = sorted(found.signatures, key=lambda address: int(address, 16))
    packed = pack(proposal.hash, again.signatures.values())
    assert unpack(packed) == tuple(found.signatures[address] for address in ascending)


@given(safe_proposals(), safe_proposals())
def test_collect__signature_of_another_proposal__is_refused(one: Proposal, other: Proposal) -> None:
    assume(one != other)

    with pytest.raises(ChainkitError):
        collect(one, SAFE, {"copy": sign_proposal(other, SAFE, signer(0))})
