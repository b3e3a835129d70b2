from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import eth_abi
import pytest
from eth_utils.address import to_checksum_address

from chainkit.council.calls import Call
from chainkit.council.log.events import SAFE as SAFE_NAME
from chainkit.council.log.events import TrailEvent, of_log
from chainkit.council.log.executions import Act, safe_history
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.transactions import Entry, EntryReader
from chainkit.council.proposal import Council, sign_proposal
from chainkit.council.safe import SafeTransaction, pack
from chainkit.errors import InconsistentAnswer
from chainkit.signatures import keccak256
from chainkit.types import Log
from support.council.proposals import OWNERS, PLAIN, RECORD, SAFE, disable, proposed, signer
from support.endpoints.endpoint_answers import hex0x
from support.endpoints.fake_endpoint import FakeProvider

HASH, BLOCK_HASH = b"\x0a" * 32, b"\x0b" * 32
PAYER = b"\x0e" * 20
STRANGER = to_checksum_address("0x" + "77" * 20)
SUCCESS = "ExecutionSuccess(bytes32,uint256)"
PAUSED, UPGRADED = "Paused(address)", "Upgraded(address)"
AUTHORIZED = "UpgradeAuthorized(address,address)"
LOG = RECORD.group_messages


def log(address: bytes, signature: str, *topics: bytes, data: bytes = b"") -> Log:
    topic = keccak256(signature.encode())
    return Log(address, (topic, *topics), data, 7, BLOCK_HASH, HASH, 0, 0)


def paused(account: str) -> Log:
    return log(LOG.address, PAUSED, data=eth_abi.encode(["address"], [account]))


def upgraded() -> Log:
    return log(LOG.address, UPGRADED, eth_abi.encode(["address"], [STRANGER]))


def authorized(account: str) -> Log:
    return log(LOG.address, AUTHORIZED, data=eth_abi.encode(["address"] * 2, [account, STRANGER]))


def numbered(logs: Sequence[Log]) -> list[Log]:
    return [each._replace(log_index=number) for number, each in enumerate(logs)]


def log_answer(each: Log) -> dict[str, Any]:
    return {
        "address": hex0x(each.address),
        "topics": [hex0x(topic) for topic in each.topics],
        "data": hex0x(each.data),
        "blockNumber": hex(each.block_number),
        "blockHash": hex0x(each.block_hash),
        "transactionHash": hex0x(each.transaction_hash),
        "transactionIndex": "0x0",
        "logIndex": hex(each.log_index),
    }


def answers(logs: Sequence[Log], to: bytes, data: bytes, sender: bytes) -> dict[str, Any]:
    return {
        "eth_getTransactionReceipt": {
            "transactionHash": hex0x(HASH),
            "blockNumber": "0x7",
            "blockHash": hex0x(BLOCK_HASH),
            "status": "0x1",
            "to": hex0x(to),
            "logs": [log_answer(each) for each in logs],
        },
        "eth_getBlockByNumber": {
            "number": "0x7",
            "hash": hex0x(BLOCK_HASH),
            "parentHash": hex0x(bytes(32)),
            "timestamp": "0x3e8",
        },
        "eth_getTransactionByHash": {
            "hash": hex0x(HASH),
            "from": hex0x(sender),
            "to": hex0x(to),
            "value": "0x0",
            "nonce": "0x5",
            "input": hex0x(data),
        },
    }


def read(
    *logs: Log,
    council: Council = SAFE,
    to: bytes = SAFE.account,
    data: bytes = b"",
    sender: bytes = PAYER,
    record: Any = RECORD,
    doctored: Any = lambda answers: answers,
    kept: KeptProposals | None = None,
) -> Entry:
    given = numbered(logs)
    names = {LOG.address: LOG.name, SAFE.account: SAFE_NAME}
    events: list[TrailEvent] = [of_log(names[each.address], each) for each in given]
    of_safe = [event for event in events if event.contract == SAFE_NAME]
    endpoint = FakeProvider(doctored(answers(given, to, data, sender))).endpoint()
    history = safe_history(of_safe, OWNERS, 1)
    reader = EntryReader(endpoint, record, council, history, kept or KeptProposals())
    return reader.read(HASH, events)


def executed() -> tuple[Log, bytes]:
    """Return the Safe's event of an execution, and the calldata that made it."""
    proposal = proposed(disable())
    for number in (0, 1):
        proposal = sign_proposal(proposal, SAFE, signer(number))
    assert isinstance(proposal.transaction, SafeTransaction)
    signatures = pack(proposal.hash, list(proposal.signatures.values()))
    success = log(SAFE.account, SUCCESS, proposal.hash, data=bytes(32))
    return success, proposal.transaction.exec_calldata(signatures)


def test_read__acted_by_an_execution__is_the_councils() -> None:
    success, data = executed()

    entry = read(paused(SAFE.address), success, data=data)

    assert (entry.kind, entry.alarms, entry.timestamp) == ("council", (), 1000)
    assert entry.executor == to_checksum_address(PAYER)
    assert [event.name for event in entry.events] == ["Paused"]
    assert [each.call for act in entry.acts for each in act.calls] == [disable()]


def test_read__stranger_acts_beside_the_councils_execution__is_not_covered_by_it() -> None:
    success, data = executed()

    entry = read(paused(STRANGER), success, data=data)

    assert entry.kind == "others"
    assert entry.alarms == (f"changed without the council's account, by {STRANGER}",)
    assert len(entry.acts) == 1


def test_read__execution_that_failed__covers_nothing_that_the_safe_did() -> None:
    success, data = executed()
    failure = success._replace(
        topics=(keccak256(b"ExecutionFailure(bytes32,uint256)"), *success.topics[1:])
    )

    entry = read(paused(SAFE.address), failure, data=data)

    assert entry.alarms == ("the Safe acted, and its owners executed nothing in this transaction",)


def test_read__upgrade_that_nobody_authorized__alarms() -> None:
    assert read(authorized(SAFE.address), upgraded(), executed()[0]).alarms == ()

    entry = read(upgraded())

    assert entry.alarms == ("GroupMessages changed, and no event says by whom",)
    assert entry.kind == "others"


def test_read__transaction_of_the_deployment__is_no_alarm() -> None:
    record = replace(RECORD, group_messages=replace(LOG, transaction=HASH))

    entry = read(upgraded(), paused(STRANGER), record=record)

    assert (entry.kind, entry.alarms) == ("deployment", ())


def test_read__log_of_the_safe_that_does_not_decode__alarms() -> None:
    entry = read(log(SAFE.account, "ChangedThreshold(uint256)"))

    unreadable, changed = entry.alarms
    assert "a log that is none of its code's" in unreadable
    assert changed.startswith("the Safe was changed, and its owners executed nothing")


def test_read__safe_created__is_no_change_without_its_owners() -> None:
    data = eth_abi.encode(
        ["address[]", "uint256", "address", "address"], [OWNERS, 2, STRANGER, STRANGER]
    )
    signature = "SafeSetup(address,address[],uint256,address,address)"
    setup = log(SAFE.account, signature, eth_abi.encode(["address"], [STRANGER]), data=data)

    entry = read(setup)

    assert (entry.alarms, entry.cautions) == ((), ())
    assert f"ran code of {STRANGER}, which may have hidden owners" in entry.events[0].words


def test_read__plain_account__acts_by_what_it_sent() -> None:
    call = disable()

    def own(sender: bytes) -> Entry:
        return read(
            paused(PLAIN.address), council=PLAIN, to=call.target, data=call.calldata, sender=sender
        )

    entry = own(PLAIN.account)
    (act,) = entry.acts
    assert (entry.kind, entry.alarms, act.nonce) == ("council", (), 5)
    assert [each.call for each in act.calls] == [call]
    assert own(PAYER).acts == ()
    assert own(PAYER).alarms == (
        "the council's account acted, and did not send this transaction itself",
    )


def test_read__plain_account_that_borrowed_a_trailer__is_lent_no_reason() -> None:
    honest = proposed(council=PLAIN)
    kept = KeptProposals({honest.hash: honest}, {honest.grounds.digest: honest.grounds})

    def act_of(call: Call) -> Act:
        data = call.calldata + honest.grounds.trailer
        made = paused(PLAIN.address)
        (act,) = read(
            made, council=PLAIN, to=call.target, data=data, sender=PLAIN.account, kept=kept
        ).acts
        return act

    own, borrowed = act_of(disable()), act_of(disable(400))
    assert (own.grounds, own.cautions) == (honest.grounds, ())
    assert borrowed.grounds is None
    assert borrowed.cautions[0].startswith("it bears the grounds of another proposal")


def _receipt(**changes: Any) -> Any:
    def doctor(given: dict[str, Any]) -> dict[str, Any]:
        return given | {"eth_getTransactionReceipt": given["eth_getTransactionReceipt"] | changes}

    return doctor


def _transaction(**changes: Any) -> Any:
    def doctor(given: dict[str, Any]) -> dict[str, Any]:
        return given | {"eth_getTransactionByHash": given["eth_getTransactionByHash"] | changes}

    return doctor


@pytest.mark.parametrize(
    ("doctored", "words"),
    [
        (lambda given: given | {"eth_getTransactionReceipt": None}, "one, as there are logs"),
        (lambda given: given | {"eth_getTransactionByHash": None}, "a transaction, as there are"),
        (_receipt(logs=[]), r"logs \[0\], got \[\]"),
        (_receipt(to=hex0x(PAYER)), "the receipt's target"),
        (_receipt(blockHash=hex0x(b"\x0c" * 32)), "block 7"),
        (_transaction(hash=hex0x(b"\x0c" * 32)), "the hash asked for"),
        (_transaction(to=hex0x(PAYER)), "the receipt's target"),
        (_transaction(input="0x1"), "well-formed"),
    ],
)
def test_read__answers_that_do_not_fit__are_refused(doctored: Any, words: str) -> None:
    with pytest.raises(InconsistentAnswer, match=words):
        read(paused(STRANGER), doctored=doctored)


def test_read__log_that_only_the_receipt_holds__is_refused() -> None:
    hidden = log_answer(paused(STRANGER)._replace(log_index=1))

    def doctored(given: dict[str, Any]) -> dict[str, Any]:
        receipt = given["eth_getTransactionReceipt"]
        receipt["logs"] = [*receipt["logs"], hidden]
        return given

    with pytest.raises(InconsistentAnswer, match=r"logs \[0\], got \[0, 1\]"):
        read(paused(STRANGER), doctored=doctored)
