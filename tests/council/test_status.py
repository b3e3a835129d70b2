"""`council status` says what `council execute` would, also where the simulation fails."""

from eth_utils.address import to_checksum_address

from chainkit.council.safe.account import GUARD_SLOT
from support.chains.tampering import write_code, write_slot
from support.council.offline import in_one_line
from support.council.proposal_commands import (
    execute,
    paused_by_two,
    status,
)
from support.council.scene import CouncilScene, send_as_safe


def test_status__guard_refuses__says_what_a_guard_may_do_and_what_changed(
    scene: CouncilScene,
) -> None:
    paused_by_two(scene)
    guard = b"\x67" * 20
    write_code(scene.chain, guard, bytes.fromhex("5f5ffd"))
    write_slot(scene.chain, scene.council.account, GUARD_SLOT, int.from_bytes(guard, "big"))
    shown, dry = status(scene), execute(scene)

    out = in_one_line(shown.out)
    assert (shown.code, dry.code) == (1, 2), shown.err
    assert out.startswith(f"caution guard {to_checksum_address(guard)} may refuse transactions")
    assert "in the way simulation: expected no revert" in out


def test_status__call_changes_nothing_any_more__says_what_changed_too(scene: CouncilScene) -> None:
    paused_by_two(scene)
    done = scene.call("pause", contract="GroupMessages")
    send_as_safe(scene, done.target, done.calldata)

    outcome = status(scene)

    out = in_one_line(outcome.out)
    assert outcome.code == 1, outcome.err
    assert "changed since it was drafted: GroupMessages paused was no, is yes" in out
    assert "expected one that changes something" in out
