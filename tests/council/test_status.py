"""`council status` says what `council execute` would, also where the simulation fails."""

from eth_utils.address import to_checksum_address

from chainkit.council.safe.account import GUARD_SLOT
from support.chains.tampering import write_code, write_slot
from support.command_line import Outcome, run
from support.council.desk import Desk, send_as_safe
from support.council.offline import in_one_line
from support.council.proposal_commands import execute, proposal_path, propose, sign

PAUSE = "- GroupMessages.pause: {}\n"


def ready(desk: Desk) -> None:
    """Leave the proposal's file with enough signatures."""
    assert propose(desk, PAUSE).code == 0
    assert (sign(desk, 0).code, sign(desk, 1).code) == (0, 0)


def status(desk: Desk) -> Outcome:
    return run("council", "status", proposal_path(desk), *desk.rpc, *desk.files)


def test_status__guard_refuses__says_what_a_guard_may_do_and_what_changed(desk: Desk) -> None:
    ready(desk)
    guard = b"\x67" * 20
    write_code(desk.chain, guard, bytes.fromhex("5f5ffd"))
    write_slot(desk.chain, desk.council.account, GUARD_SLOT, int.from_bytes(guard, "big"))
    shown, dry = status(desk), execute(desk)

    out = in_one_line(shown.out)
    assert (shown.code, dry.code) == (1, 2), shown.err
    assert out.startswith(f"caution guard {to_checksum_address(guard)} may refuse transactions")
    assert "in the way simulation: expected no revert" in out


def test_status__call_changes_nothing_any_more__says_what_changed_too(desk: Desk) -> None:
    ready(desk)
    done = desk.call("pause", contract="GroupMessages")
    send_as_safe(desk, done.target, done.calldata)

    outcome = status(desk)

    out = in_one_line(outcome.out)
    assert outcome.code == 1, outcome.err
    assert "changed since it was drafted: GroupMessages paused was no, is yes" in out
    assert "expected one that changes something" in out
