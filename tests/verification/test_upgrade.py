"""`chainkit contracts upgrade` on a real anvil, from code that a made-up release knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.chain.sending import Sending
from chainkit.contracts.artifacts import Release, runtime_code
from chainkit.contracts.parameters import PayloadBounds
from chainkit.contracts.state import INITIALIZABLE_SLOT, ContractState
from chainkit.contracts.storage_layout import StorageMember
from chainkit.contracts.verification import implementation_immutables, implementation_of
from chainkit.council.upgrade import upgrade
from chainkit.council.upgrade.upgrade import (
    deploy_implementation,
    execute_upgrade,
    plan_upgrade,
    read_log_state,
)
from chainkit.errors import ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.signatures import keccak256
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.chains.tampering import (
    ADMINISTRATOR,
    call_as,
    change_last_byte,
    set_hidden_role,
    write_code,
    write_slot,
)
from support.command_line import Outcome, run, write_keystore
from support.council.signers import dev_signer
from support.council.upgrades import NAME, note_release, traces, upgrade_command
from support.differences import differences

NAMESPACE = "erc7201:chainkit.storage.SequencedLog"
STRANGER = 5


def verify(chain: LocalChain) -> Outcome:
    place = ("--rpc", chain.url, "--deployment", chain.record_path)
    return run("contracts", "verify", *place, "--json")


@pytest.mark.usefixtures("older_release")
def test_dry_run__nothing_deployed_yet__shows_the_differences_and_sends_nothing(
    local_chain: LocalChain,
) -> None:
    before = traces(local_chain)

    told = upgrade_command(local_chain)
    content = upgrade_command(local_chain, "--json").content

    assert traces(local_chain) == before
    assert told.code == 0, told.err
    assert told.out.endswith("nothing was sent; add --broadcast --keystore FILE to send\n")
    assert max(map(len, told.out.splitlines())) <= 100
    for words in ("release 0.0.1, at 0x", "adds            function pause()", "not deployed yet"):
        assert words in told.out
    assert (content["added"], content["removed"]) == (["function pause()"], ["function retired()"])
    assert (content["storage_changes"], content["refused"]) == ([], None)
    assert (content["sent"], content["calldata"]) == (False, None)
    assert content["administrators"] == [dev_address(ADMINISTRATOR)]


@pytest.mark.usefixtures("older_release")
def test_broadcast__by_an_administrator__changes_the_code_and_nothing_else(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    proxy = local_chain.record.group_messages.address
    call_as(local_chain, ADMINISTRATOR, NAME, proxy, "setPayloadBounds", 1, 2000)
    call_as(local_chain, ADMINISTRATOR, NAME, proxy, "grantRole", bytes(32), dev_address(4))
    local_chain.publish_message(bytes(32), b"before")
    before = read_log_state(_state(local_chain), NAME, proxy)

    outcome = upgrade_command(local_chain, *administrator, "--json")

    assert outcome.code == 0, outcome.err
    content = outcome.content
    calldata = bytes.fromhex(content["calldata"][2:])
    assert content["sent"] is True
    assert content["calldata_keccak256"] == "0x" + keccak256(calldata).hex()
    assert read_log_state(_state(local_chain), NAME, proxy) == before
    assert before.payload_bounds == PayloadBounds(1, 2000)
    assert len(before.administrators) == 2
    call_as(local_chain, 2, NAME, proxy, "addMessage", bytes(32), b"after")
    assert _state(local_chain).ask(NAME, proxy, "lastSequenceId") == 2

    record = json.loads(local_chain.record_path.read_text())
    assert record["contracts"][NAME]["implementation"] == content["new_implementation"]
    # An administrator's own changes are differences; the code no longer is.
    subjects = [each["subject"] for each in differences(verify(local_chain))]
    assert subjects == ["administrators of GroupMessages", "payload bounds of GroupMessages"]


@pytest.mark.usefixtures("older_release")
def test_broadcast__record_afterwards__verifies(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    outcome = upgrade_command(local_chain, *administrator)

    assert outcome.code == 0, outcome.err
    assert "all but the code read back as it was" in outcome.out
    assert "deployed the implementation of GroupMessages: 0x" in outcome.err
    assert verify(local_chain).content["verified"] is True
    again = upgrade_command(local_chain, *administrator)
    assert again.code == 2
    assert "expected another than this package's, got 0.1.0, this package: nothing" in again.err


@pytest.mark.usefixtures("older_release")
def test_multisig__deploys_the_code_and_signs_elsewhere__upgrades_by_the_calldata(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    stranger = write_keystore(tmp_path, dev_secret(STRANGER))

    deployed = upgrade_command(
        local_chain, "--broadcast", "--implementation-only", *stranger, "--json"
    ).content
    implementation = deployed["new_implementation"]["address"]
    unsent = differences(verify(local_chain))[0]["subject"]
    planned = upgrade_command(local_chain, "--implementation", implementation, "--json").content
    shown = upgrade_command(local_chain, "--implementation", implementation).out
    local_chain.send(
        local_chain.record.group_messages.address,
        bytes.fromhex(planned["calldata"][2:]),
        ADMINISTRATOR,
    )

    assert deployed["sent"] is False
    assert deployed["calldata"] == planned["calldata"]
    assert planned["calldata_keccak256"] in shown
    assert planned["calldata"] in shown.replace("\n" + 16 * " ", "")
    assert unsent.startswith("code of GroupMessages' implementation")
    slot = differences(verify(local_chain))[0]
    assert slot["subject"].startswith("implementation slot of GroupMessages")
    words = "whose code is GroupMessages 0.1.0, this package: the record may be older"
    assert slot["got"].startswith(implementation) and words in slot["got"]


def test_upgrade__deployed_code_is_this_packages__is_refused(local_chain: LocalChain) -> None:
    outcome = upgrade_command(local_chain)

    assert outcome.code == 2
    assert "code of GroupMessages: expected another than this package's" in outcome.err


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        ((StorageMember("fee", 1, 0, 32, "uint256"),), "uint256 fee: removed"),
        ((StorageMember("isPaused", 0, 0, 1, "bool"),), "now bool paused"),
    ],
)
def test_upgrade__stored_values_would_change_their_meaning__exits_1_and_sends_nothing(
    storage: tuple[StorageMember, ...],
    words: str,
    local_chain: LocalChain,
    older_release: Release,
    administrator: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {(member.slot, member.offset): member for member in older_release.storage[NAMESPACE]}
    members = own | {(member.slot, member.offset): member for member in storage}
    layout = {**older_release.storage, NAMESPACE: tuple(members.values())}
    note_release(monkeypatch, replace(older_release, storage=layout))
    before = traces(local_chain)

    outcome = upgrade_command(local_chain, *administrator, "--accept-unknown")
    content = upgrade_command(local_chain, "--json").content

    assert traces(local_chain) == before
    assert outcome.code == 1
    assert "refused         stored values would change their meaning" in outcome.out
    assert "storage BREAKS" in outcome.out
    (change,) = content["storage_changes"]
    assert change["keeps_meaning"] is False and words in change["change"]
    assert NAMESPACE in change["change"]


def test_upgrade__code_of_no_known_release__is_refused_unless_accepted(
    local_chain: LocalChain, administrator: list[str]
) -> None:
    change_last_byte(local_chain, implementation_of(local_chain.record.group_messages))
    before = traces(local_chain)

    refused = upgrade_command(local_chain, *administrator)
    untouched = traces(local_chain) == before
    accepted = upgrade_command(local_chain, *administrator, "--accept-unknown")

    assert untouched
    assert (refused.code, accepted.code) == (1, 0), accepted.err
    assert "differences     not known" in refused.out
    # The code that ran until then stays unknown: verification tells of it ever after.
    difference = differences(verify(local_chain))[0]
    assert difference["subject"].startswith(f"implementations of {NAME} since block")


@pytest.mark.usefixtures("older_release")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--broadcast"], "--broadcast needs --keystore"),
        (["--implementation", "0x12"], "expected 0x and 40 hex digits"),
        (["--implementation", dev_address(7)], "GroupMessages, keccak256"),
        (["--implementation", dev_address(7), "--implementation-only"], "--implementation-only"),
    ],
)
def test_upgrade__cannot_be__is_refused(
    arguments: list[str], words: str, local_chain: LocalChain
) -> None:
    before = traces(local_chain)

    outcome = upgrade_command(local_chain, *arguments)

    assert outcome.code == 2
    assert words in outcome.err
    assert traces(local_chain) == before


@pytest.mark.usefixtures("older_release")
def test_upgrade__right_code_that_anybody_could_initialize__is_refused(
    local_chain: LocalChain,
) -> None:
    address = b"\x09" * 20
    immutables = implementation_immutables(local_chain.record, address)
    write_code(local_chain, address, runtime_code(NAME, immutables))

    unlocked = upgrade_command(local_chain, "--implementation", "0x" + address.hex())
    write_slot(local_chain, address, INITIALIZABLE_SLOT, 2**64 - 1)
    locked = upgrade_command(local_chain, "--implementation", "0x" + address.hex())

    assert unlocked.code == 2
    assert "expected locked, got not initialized" in unlocked.err
    assert locked.code == 0, locked.err


@pytest.mark.usefixtures("older_release")
def test_broadcast__key_is_no_administrators__is_refused_before_anything_is_sent(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    before = traces(local_chain)

    outcome = upgrade_command(
        local_chain, "--broadcast", *write_keystore(tmp_path, dev_secret(STRANGER))
    )

    assert outcome.code == 2
    assert f"got {dev_address(STRANGER)}" in outcome.err
    assert traces(local_chain) == before


@pytest.mark.usefixtures("older_release")
def test_simulation__reverts__is_told_in_the_contracts_words(local_chain: LocalChain) -> None:
    set_hidden_role(local_chain, local_chain.record.group_messages.address, ADMINISTRATOR, False)

    with pytest.raises(RefusedRequest, match=r"AccessControlUnauthorizedAccount\(account=0x70"):
        plan_upgrade(local_chain.endpoint, local_chain.record, NAME, local_chain.head().reference)


@pytest.mark.usefixtures("older_release")
def test_execute__role_was_lost_meanwhile__fails_in_the_contracts_words(
    local_chain: LocalChain,
) -> None:
    endpoint, record = local_chain.endpoint, local_chain.record
    signer = dev_signer(ADMINISTRATOR)
    new = deploy_implementation(Sending(endpoint), record, NAME, signer)
    plan = plan_upgrade(endpoint, record, NAME, local_chain.head().reference, new.address)
    set_hidden_role(local_chain, record.group_messages.address, ADMINISTRATOR, False)

    with pytest.raises(TransactionFailed, match="AccessControlUnauthorizedAccount"):
        execute_upgrade(Sending(endpoint), record, plan, signer)


@pytest.mark.usefixtures("older_release")
def test_execute__key_is_no_administrators__is_refused_before_anything_is_sent(
    local_chain: LocalChain,
) -> None:
    endpoint, record = local_chain.endpoint, local_chain.record
    new = deploy_implementation(Sending(endpoint), record, NAME, dev_signer(STRANGER))
    plan = plan_upgrade(endpoint, record, NAME, local_chain.head().reference, new.address)
    before = traces(local_chain)

    with pytest.raises(ConfigurationError, match=dev_address(STRANGER)):
        execute_upgrade(Sending(endpoint), record, plan, dev_signer(STRANGER))

    assert traces(local_chain) == before


@pytest.mark.usefixtures("older_release")
def test_execute__state_reads_back_as_another__is_a_failure(
    local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, record = local_chain.endpoint, local_chain.record
    signer = dev_signer(ADMINISTRATOR)
    new = deploy_implementation(Sending(endpoint), record, NAME, signer)
    plan = plan_upgrade(endpoint, record, NAME, local_chain.head().reference, new.address)

    def changing_state(state: ContractState, name: str, proxy: bytes) -> upgrade.LogState:
        return replace(read_log_state(state, name, proxy), topic_kind=state.block.number)

    monkeypatch.setattr(upgrade, "read_log_state", changing_state)
    with pytest.raises(TransactionFailed, match="state of GroupMessages"):
        execute_upgrade(Sending(endpoint), record, plan, signer)


def _state(chain: LocalChain) -> ContractState:
    return ContractState(chain.endpoint, chain.head().reference)
