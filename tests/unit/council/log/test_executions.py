from collections.abc import Sequence
from typing import Any

import eth_abi
import pytest
from eth_utils.address import to_checksum_address

from chainkit.council.calls import Call
from chainkit.council.log.events import SAFE as SAFE_NAME
from chainkit.council.log.events import TrailEvent, of_log
from chainkit.council.log.executions import Act, SafeHistory, Sent, read_executions, safe_history
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.proposal import Proposal, sign_proposal
from chainkit.council.safe import InnerCall, SafeTransaction, pack
from chainkit.signatures import keccak256
from chainkit.types import Log
from support.council.proposals import OWNERS, RECORD, SAFE, disable, pause, proposed, signer

FIRST, SECOND = b"\x01" * 32, b"\x02" * 32
PAYER = b"\x0e" * 20
RELAY = b"\x0f" * 20


def event(name: str, *topics: bytes, data: bytes = b"", transaction: bytes = FIRST) -> TrailEvent:
    types = {
        "ExecutionSuccess": "bytes32,uint256",
        "ExecutionFailure": "bytes32,uint256",
        "ApproveHash": "bytes32,address",
        "SafeSetup": "address,address[],uint256,address,address",
    }.get(name, "address")
    topic = keccak256(f"{name}({types})".encode())
    place = (1, bytes(32), transaction, 0, 0)
    return of_log(SAFE_NAME, Log(SAFE.account, (topic, *topics), data, *place))


def execution(
    hash_: bytes, transaction: bytes = FIRST, name: str = "ExecutionSuccess"
) -> TrailEvent:
    return event(name, hash_, data=bytes(32), transaction=transaction)


def address_topic(address: str) -> bytes:
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def signed(nonce: int, *calls: Any, signers: Sequence[int] = (0, 1)) -> Proposal:
    proposal = proposed(*calls, nonce=nonce)
    for number in signers:
        proposal = sign_proposal(proposal, SAFE, signer(number))
    return proposal


def calldata(proposal: Proposal) -> bytes:
    assert isinstance(proposal.transaction, SafeTransaction)
    return proposal.transaction.exec_calldata(
        pack(proposal.hash, list(proposal.signatures.values()))
    )


def borrowed(target: bytes, data: bytes, proposal: Proposal) -> SafeTransaction:
    """Return a call of anything with the trailer of a proposal."""
    assert SAFE.safe is not None
    return SafeTransaction.of_calls(
        chain_id=SAFE.chain_id,
        safe=SAFE.account,
        nonce=4,
        calls=[InnerCall(target, data + proposal.grounds.trailer)],
        multi_send=SAFE.safe.multi_send,
    )


def sent(data: bytes, to: bytes = SAFE.account) -> Sent:
    return Sent(PAYER, to, 0, 0, data)


def read(
    data: bytes,
    events: Sequence[TrailEvent],
    nonce: int,
    to: bytes = SAFE.account,
    kept: KeptProposals | None = None,
) -> tuple[Act, ...]:
    history = safe_history(events, OWNERS, nonce)
    return read_executions(RECORD, SAFE, history, kept or KeptProposals(), sent(data, to), events)


def test_read__execution_by_calldata__is_proved_by_its_hash() -> None:
    proposal = signed(4, disable(), pause())

    (act,) = read(calldata(proposal), [execution(proposal.hash)], nonce=5)

    assert (act.hash, act.nonce, act.succeeded) == (proposal.hash, 4, True)
    assert [each.call for each in act.calls] == [disable(), pause()]
    assert {each.address for each in act.signers} == set(OWNERS[:2])
    assert act.trailer is not None
    assert act.trailer.digest == proposal.grounds.digest
    assert (act.cautions, act.alarms) == ((), ())


def test_read__calldata_of_another_hash__is_never_taken_for_it() -> None:
    executed, shown = signed(4, disable()), signed(4, pause())

    (act,) = read(calldata(shown), [execution(executed.hash)], nonce=5)

    assert (act.hash, act.source, act.calls, act.signers) == (executed.hash, None, (), ())
    assert any("does not tell its calls" in caution for caution in act.cautions)


def test_read__calldata_that_does_not_decode__is_said() -> None:
    proposal = signed(4, disable())

    (act,) = read(b"\x12\x34", [execution(proposal.hash)], nonce=5)

    assert act.source is None
    assert act.cautions[0].startswith("its calldata is no execution")


def test_read__kept_proposal__tells_what_a_relayed_execution_was() -> None:
    proposal = signed(4, disable(), signers=(1, 2))
    kept = KeptProposals({proposal.hash: proposal}, {proposal.grounds.digest: proposal.grounds})

    (act,) = read(b"", [execution(proposal.hash)], nonce=5, to=RELAY, kept=kept)

    assert (act.source, act.nonce, act.grounds) == ("proposal", 4, proposal.grounds)
    assert {each.address for each in act.signers} == set(OWNERS[1:])
    assert act.cautions == (f"executed through {to_checksum_address(RELAY)}",)


def test_read__execution_within_an_execution__has_the_later_nonce_and_the_earlier_event() -> None:
    outer, within = signed(4, disable()), signed(5, pause())

    found = read(calldata(outer), [execution(within.hash), execution(outer.hash)], nonce=6)

    assert [(act.hash, act.nonce) for act in found] == [(within.hash, None), (outer.hash, 4)]
    assert found[1].alarms == ()


def test_read__nonce_that_was_not_counted__alarms() -> None:
    proposal = signed(2, disable())

    (act,) = read(calldata(proposal), [execution(proposal.hash)], nonce=5)

    assert act.nonce == 2
    assert act.alarms[0].startswith("it has nonce 2, where 4 was counted")


def test_read__more_events_than_nonces__alarms_and_does_not_fail() -> None:
    proposal = signed(0, disable())
    events = [execution(b"\xee" * 32), execution(proposal.hash)]

    invented, act = read(calldata(proposal), events, nonce=1)

    assert (invented.source, act.nonce) == (None, 0)


def test_read__hash_told_twice__alarms() -> None:
    proposal = signed(0, disable())

    _, second = read(calldata(proposal), 2 * [execution(proposal.hash)], nonce=1)

    assert any("says it twice" in alarm for alarm in second.alarms)


@pytest.mark.parametrize("nonce", [2**40, 2**255])
def test_read__nonce_that_foreign_code_made_endless__still_ends(nonce: int) -> None:
    proposal = signed(4, disable())
    events = [execution(proposal.hash), execution(b"\xee" * 32)]

    known, unknown = read(calldata(proposal), events, nonce)

    assert (known.nonce, known.source) == (4, "calldata")
    assert known.alarms[0].startswith("it has nonce 4, where one of")
    assert unknown.source is None


def test_read__nonce_that_was_counted_beyond_any__is_found() -> None:
    proposal = signed(2**40, disable())

    (act,) = read(calldata(proposal), [execution(proposal.hash)], nonce=2**40 + 1)

    assert (act.nonce, act.alarms) == (2**40, ())


def test_read__trailer_of_an_honest_proposal_behind_another_call__lends_no_reason() -> None:
    honest = signed(3, disable())
    kept = KeptProposals({honest.hash: honest}, {honest.grounds.digest: honest.grounds})
    take_over = Call.make(RECORD, "NodeRegistry", "transferOwnership", "0x" + "66" * 20)
    other = borrowed(take_over.target, take_over.calldata, honest)

    (act,) = read(other.exec_calldata(b""), [execution(other.hash)], nonce=5, kept=kept)

    assert [each.call for each in act.calls] == [take_over]
    assert act.trailer is not None
    assert act.grounds is None
    assert any("grounds of another proposal" in caution for caution in act.cautions)


def test_read__same_calls_at_another_nonce__have_their_grounds() -> None:
    proposal, again = signed(3, disable()), signed(4, disable())
    kept = KeptProposals({proposal.hash: proposal}, {proposal.grounds.digest: proposal.grounds})

    (act,) = read(calldata(again), [execution(again.hash)], nonce=5, kept=kept)

    assert (act.grounds, act.cautions) == (proposal.grounds, ())


def test_read__failure__did_not_succeed() -> None:
    proposal = signed(0, disable())
    events = [execution(proposal.hash, name="ExecutionFailure")]

    (act,) = read(calldata(proposal), events, nonce=1)

    assert not act.succeeded


def history(events: Sequence[TrailEvent], nonce: int = 3) -> SafeHistory:
    return safe_history(events, OWNERS, nonce)


def test_history__owner_added_and_removed__goes_back_to_each_transaction() -> None:
    gone = "0x" + 40 * "7"
    events = [
        event("RemovedOwner", address_topic(gone), transaction=FIRST),
        event("AddedOwner", address_topic(OWNERS[2]), transaction=SECOND),
    ]

    found = history(events)

    assert found.owners[FIRST] == {gone, *OWNERS[:2]}
    assert found.owners[SECOND] == set(OWNERS[:2])


def test_history__safe_created__had_no_owner_before() -> None:
    data = eth_abi.encode(
        ["address[]", "uint256", "address", "address"], [OWNERS, 2, "0x" + 40 * "0", OWNERS[0]]
    )
    created = event("SafeSetup", address_topic(OWNERS[0]), data=data)

    assert history([created]).owners[FIRST] == frozenset()
    assert created.words == f"created with threshold 2 and owners {', '.join(OWNERS)}"


def test_history__executions__have_nonces_counted_from_the_end() -> None:
    events = [
        execution(b"\x01" * 32, FIRST),
        execution(b"\x02" * 32, SECOND),
        execution(b"\x03" * 32, SECOND),
    ]

    assert history(events, nonce=9).nonces == {FIRST: range(6, 7), SECOND: range(7, 9)}
