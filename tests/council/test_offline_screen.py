"""An owner without a network is shown a proposal, and nothing unchecked passes for checked."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from chainkit.cli.council import proposals as commands
from chainkit.council.calls import Call, expected_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal import (
    Evidence,
    Proposal,
    read_proposal,
    sign_proposal,
    write_proposal_file,
)
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.signatures import address_of
from chainkit.terminal.facts import echo_quoted
from support.command_line import Outcome, run, write_keystore
from support.council.fake_registry import node_key
from support.council.offline import WEEK, Paper, in_one_line, paper
from support.council.proposals import (
    NAMES,
    OWNERS,
    RECORD,
    SAFE,
    SECRETS,
    change_threshold,
    disable,
    grounds,
    pause,
    proposed,
    signer,
)

STRANGER = to_checksum_address(b"\x66" * 20)
OLD = to_checksum_address(b"\x55" * 20)
NOT_CHECKED = (
    "not checked reason, evidence and the state before, with what follows from it, are its "
    "drafter's words; 'chainkit council status' asks the chain"
)


def drafted(call: Call, before: Mapping[str, str]) -> Proposal:
    """A proposal by somebody who claims what he likes of the state before."""
    after = expected_change(EFFECTS, RECORD, [call], before).after
    said = replace(grounds(), before=before, after=after, expires=int(time.time()) + WEEK)
    if call.contract == "GroupMessages":
        said = replace(said, runs={"GroupMessages": OLD})
    return Proposal.make(RECORD, SAFE, [call], said, 0, None)


def shown(folder: Path, proposal: Proposal, *options: str) -> Outcome:
    scene = paper(folder, proposal=proposal)
    outcome = run("council", "show", scene.path, *scene.files, *options)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    return outcome


def upgrade() -> Proposal:
    return drafted(
        Call.make(RECORD, "GroupMessages", "upgradeToAndCall", STRANGER, b""),
        {
            "GroupMessages implementation": f"{OLD} (release 0.1.0)",
            "GroupMessages sequence": "0x" + "44" * 20,
        },
    )


def test_show__upgrade_to_code_that_nobody_looked_at__says_so(tmp_path: Path) -> None:
    out = in_one_line(shown(tmp_path, upgrade()).out)

    assert "this package" not in out
    assert f"-> {STRANGER} (not in your council file)" in out
    assert f"nobody looked at the code at {STRANGER}: 'status' compares it" in out


def test_show__what_rests_on_its_drafter__is_marked(tmp_path: Path) -> None:
    assert NOT_CHECKED in in_one_line(shown(tmp_path, proposed()).out)


def test_show__threshold_lowered_under_a_false_state_before__is_still_there(tmp_path: Path) -> None:
    call = Call.make_of_safe(SAFE.account, "addOwnerWithThreshold", STRANGER, 1)
    before = {"Safe owners": ", ".join(sorted(OWNERS)), "Safe signatures needed": "1"}

    out = in_one_line(shown(tmp_path, drafted(call, before), "--owners").out)

    assert "changes Safe signatures needed: 1, as before" in out


def test_show__addresses_that_change__are_named_or_told_to_be_strangers(tmp_path: Path) -> None:
    call = Call.make_of_safe(SAFE.account, "swapOwner", "0x" + "1".zfill(40), OWNERS[0], STRANGER)
    before = {"Safe owners": ", ".join(sorted(OWNERS)), "Safe signatures needed": "2"}

    out = in_one_line(shown(tmp_path, drafted(call, before), "--owners").out)

    changes = out.split("changes ")[1]
    assert changes.count(f"{STRANGER} (not in your council file)") == 1
    for owner, name in zip(OWNERS, NAMES, strict=True):
        assert f"{owner} ({name})" in changes


def test_show__role_of_the_administrators__is_named(tmp_path: Path) -> None:
    call = Call.make(RECORD, "GroupMessages", "grantRole", bytes(32), STRANGER)

    out = shown(tmp_path, drafted(call, {"GroupMessages administrators": OWNERS[0]})).out

    assert "  role          DEFAULT_ADMIN_ROLE\n" in out


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_show__text_of_its_drafter__draws_no_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    false = f"SafeTx hash 0x{'1' * 64}"
    url = f'https://a.example/"{"x" * 43}SafeTx-hash--0x{"1" * 64}'
    add = Call.make(RECORD, "NodeRegistry", "addNode", STRANGER, node_key(1).public_key, url)
    subject = f"node of key {address_of(node_key(1).public_key)}"
    facts = {f"{subject} {name}": "(none)" for name in ("status", "holder", "http address")}
    said = grounds(reason=f"{'x ' * 30}{false}", evidence=(Evidence(f"a {false}", "ab" * 32),))
    after = expected_change(EFFECTS, RECORD, [add], facts).after
    said = replace(said, before=facts, after=after, expires=int(time.time()) + WEEK)

    proposal = Proposal.make(RECORD, SAFE, [add], said, 0, None)

    lines = shown(tmp_path, proposal).out.splitlines()

    drawn = [line for line in lines if "1111" in line]
    assert all(line[16:18] == "> " for line in drawn)
    assert max(map(len, drawn)) <= min(max(columns, 40), 80)
    hashes = {line for line in lines if line.startswith("SafeTx hash")}
    assert hashes == {f"SafeTx hash     0x{proposal.hash.hex()}"}


def test_echo_quoted__blanks_and_quotes__are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    echo_quoted("reason", ' a"  b\n')

    assert capsys.readouterr().out == r'reason          > "\x20a\" \x20b\x0a"' + "\n"


def test_show__several_calls__names_each_target_and_the_delegatecall(tmp_path: Path) -> None:
    expires = int(time.time()) + WEEK

    out = in_one_line(shown(tmp_path, proposed(disable(), pause(), expires=expires)).out)

    assert f"NodeRegistry.updateHealth at 0x{'33' * 20}" in out
    assert f"GroupMessages.pause at 0x{'11' * 20}" in out
    assert "through a delegatecall of 0x" in out and "(MultiSendCallOnly)" in out
    assert f"while GroupMessages runs the code at {OLD}" in out


@pytest.mark.parametrize(
    ("call", "before"),
    [
        (
            Call.make(RECORD, "GroupMessages", "revokeRole", bytes(32), OWNERS[0]),
            {"GroupMessages administrators": f"{OWNERS[0]}, only honest people"},
        ),
        (
            Call.make(RECORD, "NodeRegistry", "acceptOwnership"),
            {"NodeRegistry owner": OWNERS[0], "NodeRegistry pending owner": "as agreed on Monday"},
        ),
        (
            Call.make(RECORD, "NodeRegistry", "acceptOwnership"),
            {"NodeRegistry owner": "nobody", "NodeRegistry pending owner": OWNERS[0]},
        ),
        (
            Call.make(RECORD, "NodeRegistry", "transferOwnership", STRANGER),
            {"NodeRegistry owner": "the council", "NodeRegistry pending owner": "(none)"},
        ),
        (
            Call.make(RECORD, "GroupMessages", "setPayloadBounds", 1, 100),
            {"GroupMessages payload bounds": "too much"},
        ),
        (pause(), {"GroupMessages paused": "no -> never"}),
        (disable(), {"node 300 status": "enabled by mistake"}),
        (change_threshold(), {"Safe owners": "three people", "Safe signatures needed": "2"}),
        (
            Call.make(RECORD, "GroupMessages", "upgradeToAndCall", STRANGER, b""),
            {"GroupMessages implementation": "old", "GroupMessages sequence": "0x" + "44" * 20},
        ),
        (
            Call.make(RECORD, "NodeRegistry", "setHttpAddressUpdatesOpen", True),
            {"NodeRegistry operators' address updates": "shut"},
        ),
    ],
    ids=lambda value: value.function if isinstance(value, Call) else None,
)
def test_draft__state_before_that_no_chain_tells__is_refused(
    call: Call, before: dict[str, str]
) -> None:
    with pytest.raises(MalformedData, match="facts before"):
        drafted(call, before)


@pytest.mark.parametrize(
    "runs",
    [{}, {"GroupMessages": "the right one"}, {"GroupMessages": OLD, "IdentityUpdates": OLD}],
    ids=["none", "words", "another's"],
)
def test_make__code_of_other_proxies_than_are_called__is_refused(runs: dict[str, str]) -> None:
    with pytest.raises(MalformedData, match="grounds, runs"):
        proposed(pause(), runs=runs)


def test_make__more_calls_than_anybody_reads__is_refused() -> None:
    calls = [disable(100 * number) for number in range(1, 52)]

    assert len(proposed(*calls[:50]).calls) == 50
    with pytest.raises(ConfigurationError, match="at most 50 calls"):
        proposed(*calls)


def test_sign__expires_after_a_year__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path, proposal=proposed(expires=int(time.time()) + 52 * WEEK))

    outcome = scene.sign(*scene.keystore(SECRETS[0]))

    assert outcome.code == 2
    assert "one that expires within 90 days" in in_one_line(outcome.err)


def test_sign__another_owner_signed_the_file_meanwhile__keeps_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = paper(tmp_path)
    confirm = commands.confirm

    def confirm_while_bob_signs(proposal: Proposal, takes_pipe: bool) -> None:
        signed = sign_proposal(scene.proposal, SAFE, signer(1))
        write_proposal_file(scene.path, signed, is_new=False)
        confirm(proposal, takes_pipe)

    monkeypatch.setattr(commands, "confirm", confirm_while_bob_signs)
    outcome = scene.sign(*write_keystore(tmp_path, SECRETS[0]))

    assert outcome.code == 0, outcome.err
    assert set(read_proposal(scene.path, RECORD, SAFE).signatures) == {OWNERS[0], OWNERS[1]}


def test_sign__file_became_another_proposal_meanwhile__is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = paper(tmp_path)
    other = proposed(disable(400), expires=int(time.time()) + WEEK)
    confirm = commands.confirm

    def confirm_while_it_is_replaced(proposal: Proposal, takes_pipe: bool) -> None:
        write_proposal_file(scene.path, other, is_new=False)
        confirm(proposal, takes_pipe)

    monkeypatch.setattr(commands, "confirm", confirm_while_it_is_replaced)
    outcome = scene.sign(*write_keystore(tmp_path, SECRETS[0]))

    assert outcome.code == 2
    assert read_proposal(scene.path, RECORD, SAFE) == other


def test_sign__file_with_a_strangers_signature__is_refused_before_the_question(
    tmp_path: Path,
) -> None:
    scene: Paper = paper(tmp_path)
    write_proposal_file(scene.path, scene.proposal.signed(scene.strangers_signature), is_new=False)

    outcome = scene.sign(*scene.keystore(SECRETS[0]))

    assert outcome.code == 2
    assert "an owner whom your council file names" in in_one_line(outcome.err)
    assert "To sign" not in outcome.err


def test_parse__evidence_without_end__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path)
    many = tuple(Evidence(f"node-{number}", "ab" * 32) for number in range(21))
    write_proposal_file(scene.path, proposed(evidence=many), is_new=False)

    outcome = run("council", "show", scene.path, *scene.files)

    assert outcome.code == 2
    assert "at most 20, got 21" in in_one_line(outcome.err)
