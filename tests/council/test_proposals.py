from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from eth_abi.abi import encode
from eth_account import Account

from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, IMPLEMENTATION_SLOT
from chainkit.council.calls import Call
from chainkit.council.proposal import Proposal, grounds, sign_proposal
from chainkit.council.proposal.execution import execute, prepare, sign_execution
from chainkit.council.safe import known_versions
from chainkit.council.signing import KeySigner
from chainkit.errors import ConfigurationError, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.types import Receipt
from localnet.accounts import COUNCIL
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.council.proposal_commands import with_node
from support.council.scene import (
    OWNER_NUMBERS,
    PAYER,
    CouncilScene,
    plain_scene,
    safe_scene,
    send_as_safe,
)

SENTINEL = "0x" + "1".rjust(40, "0")
"""Stands before the first owner in the Safe's list."""


def disable(scene: CouncilScene, node_id: int = 100) -> Call:
    return scene.call("updateHealth", node_id, False)


def executed(scene: CouncilScene, proposal: Proposal) -> Receipt:
    execution = prepare(proposal, scene.standing(proposal), dev_address(PAYER))
    payer = KeySigner("key", dev_secret(PAYER)) if scene.council.safe else None
    return execute(execution, scene.sending, sign_execution(execution, scene.sending, payer))


def is_enabled(scene: CouncilScene, node_id: int = 100) -> bool:
    registry, head = scene.registry(), scene.endpoint.head().reference
    return registry.node(node_id, head).node.is_enabled


@pytest.mark.parametrize(("owners", "threshold"), [(3, 2), (5, 3)])
@pytest.mark.parametrize("version", known_versions())
def test_execute__enough_owners_signed__does_what_was_proposed(
    version: str, owners: int, threshold: int, local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    with safe_scene(local_chain, tmp_path, version, threshold, owners) as scene:
        proposal = scene.draft(disable(scene))
        signed = scene.signed(proposal, range(owners)[-threshold:])

        receipt = executed(scene, signed)

        assert receipt.succeeded
        assert not is_enabled(scene)
        assert scene.standing(signed).obstacles


def test_execute__several_calls__are_made_in_one_transaction(scene: CouncilScene) -> None:
    calls = [disable(scene)]
    calls += [scene.call("pause", contract=name) for name in ("GroupMessages", "IdentityUpdates")]

    receipt = executed(scene, scene.signed(scene.draft(*calls), [0, 1]))

    state = scene.state()
    assert not is_enabled(scene)
    assert state.ask("GroupMessages", scene.record.group_messages.address, "paused")
    assert state.ask("IdentityUpdates", scene.record.identity_updates.address, "paused")
    assert {log.address for log in receipt.logs} >= {call.target for call in calls}


def test_execute__plain_account__needs_no_key_once_it_is_signed(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    signer = KeySigner("key", dev_secret(COUNCIL))
    signed = sign_proposal(scene.draft(disable(scene)), scene.council, signer)

    executed(scene, signed)

    assert not is_enabled(scene)


def test_execute__one_signature_short__is_refused_before_anything_is_sent(
    scene: CouncilScene,
) -> None:
    signed = scene.signed(scene.draft(disable(scene)), [0])
    head = scene.endpoint.head()

    with pytest.raises(ConfigurationError, match="1 more signature needed"):
        executed(scene, signed)

    assert scene.endpoint.head() == head


def test_execute__strangers_signature_among_them__is_refused(scene: CouncilScene) -> None:
    proposal = scene.signed(scene.draft(disable(scene)), [0, 1])
    signature = Account.unsafe_sign_hash(proposal.hash, dev_secret(PAYER)).signature
    signed = proposal.signed(signature)

    with pytest.raises(ConfigurationError, match=f"{dev_address(PAYER)}, who is no owner"):
        executed(scene, signed)


def test_execute__second_time__is_refused(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(disable(scene)), [0, 1])
    executed(scene, signed)

    with pytest.raises(ConfigurationError, match="nonce 0 is used already"):
        executed(scene, signed)


def test_execute__nonce_used_by_another__is_refused(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(disable(scene)), [0, 1])
    executed(
        scene, scene.signed(scene.draft(scene.call("setHttpAddressUpdatesOpen", True)), [1, 2])
    )

    with pytest.raises(
        ConfigurationError,
        match="nonce 0 is used already: another transaction was executed in block",
    ):
        executed(scene, signed)


def test_execute__before_its_turn__waits(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(disable(scene), nonce=1), [0, 1])

    with pytest.raises(ConfigurationError, match="nonce 1 must wait"):
        executed(scene, signed)

    executed(
        scene, scene.signed(scene.draft(scene.call("setHttpAddressUpdatesOpen", True)), [1, 2])
    )
    executed(scene, signed)
    assert not is_enabled(scene)


def test_execute__expired__is_refused(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(disable(scene), days=1), [0, 1])
    scene.chain.anvil.request("evm_increaseTime", 86_400 + 60)
    scene.chain.mine()

    with pytest.raises(ConfigurationError, match="it has expired"):
        executed(scene, signed)


def clock_at(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    monkeypatch.setattr(grounds, "time", SimpleNamespace(time=lambda: seconds))


def test_execute__expired_by_the_clock_and_no_block_came__is_refused(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = scene.signed(scene.draft(disable(scene), days=1), [0, 1])
    execution = prepare(signed, scene.standing(signed), dev_address(PAYER))
    transaction = sign_execution(execution, scene.sending, KeySigner("key", dev_secret(PAYER)))
    clock_at(monkeypatch, signed.grounds.expires)
    assert not scene.standing(signed).obstacles

    clock_at(monkeypatch, signed.grounds.expires + 1)

    assert scene.standing(signed).obstacles == ("it has expired",)
    # The clock went on while the payer was asked: asked again, right before it is sent.
    with pytest.raises(ConfigurationError, match="it has expired"):
        execute(execution, scene.sending, transaction)
    assert is_enabled(scene)


def test_draft__endpoint_names_an_old_time__expires_from_the_clock_on(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = scene.endpoint.head().timestamp + 1_000_000
    clock_at(monkeypatch, later)

    assert scene.draft(disable(scene), days=1).grounds.expires == later + 86_400


def test_execute__fact_changed_since_it_was_drafted__is_refused(scene: CouncilScene) -> None:
    proposal = scene.draft(scene.call("transferFrom", dev_address(9), dev_address(7), 100))
    signed = scene.signed(proposal, [0, 1])
    other = scene.call("transferFrom", dev_address(9), dev_address(6), 100)
    send_as_safe(scene, other.target, other.calldata)

    with pytest.raises(ConfigurationError, match="node 100 holder"):
        executed(scene, signed)


def test_execute__fact_changed_but_the_call_is_still_possible__is_refused(
    scene: CouncilScene,
) -> None:
    def grant(number: int) -> Call:
        account = dev_address(number)
        return scene.call("grantRole", DEFAULT_ADMIN_ROLE, account, contract="GroupMessages")

    signed = scene.signed(scene.draft(grant(6)), [0, 1])
    other = grant(7)
    send_as_safe(scene, other.target, other.calldata)

    assert scene.standing(signed).change is not None
    with pytest.raises(
        ConfigurationError, match="changed since it was drafted: GroupMessages administrators was"
    ):
        executed(scene, signed)


def test_execute__implementation_changed_since__is_refused(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(scene.call("pause", contract="GroupMessages")), [0, 1])
    proxy = scene.record.group_messages
    assert proxy.implementation is not None
    code = scene.endpoint.code(proxy.implementation.address, scene.endpoint.head().reference)
    # The same code elsewhere: whoever upgraded the proxy could have put any other there.
    elsewhere = "c0de" * 10
    anvil = scene.chain.anvil
    anvil.request("anvil_setCode", f"0x{elsewhere}", "0x" + code.hex())
    place = ("0x" + proxy.address.hex(), f"0x{IMPLEMENTATION_SLOT:064x}")
    anvil.request("anvil_setStorageAt", *place, "0x" + elsewhere.rjust(64, "0"))
    scene.chain.mine()

    with pytest.raises(ConfigurationError, match="code of GroupMessages was"):
        executed(scene, signed)


def test_draft__what_changes_nothing__is_refused(scene: CouncilScene) -> None:
    with pytest.raises(ConfigurationError, match="enabled already"):
        scene.draft(scene.call("updateHealth", 100, True))


def test_draft__node_that_does_not_exist__is_refused(scene: CouncilScene) -> None:
    with pytest.raises(ConfigurationError, match="node 900"):
        scene.draft(disable(scene, 900))


def test_draft__by_an_account_that_owns_nothing__is_refused(scene: CouncilScene) -> None:
    nobody = replace(scene.council, account=bytes.fromhex(dev_address(2)[2:]), safe=None)

    with pytest.raises(ConfigurationError, match="sender of updateHealth"):
        replace(scene, council=nobody).draft(disable(scene))


def test_draft__council_file_that_takes_the_safe_for_a_plain_account__is_refused(
    scene: CouncilScene,
) -> None:
    with pytest.raises(ConfigurationError, match="a contract"):
        replace(scene, council=replace(scene.council, safe=None)).draft(disable(scene))


def test_draft__council_file_with_another_multi_send__is_refused(scene: CouncilScene) -> None:
    assert scene.council.safe is not None
    poisoned = replace(scene.council.safe, multi_send=scene.record.node_registry.address)

    with pytest.raises(ConfigurationError, match="MultiSendCallOnly"):
        replace(scene, council=replace(scene.council, safe=poisoned)).draft(disable(scene))


def test_draft__nonce_that_is_used__is_refused(scene: CouncilScene) -> None:
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 1]))

    with pytest.raises(ConfigurationError, match="nonce"):
        scene.draft(scene.call("updateHealth", 100, True), nonce=0)


def test_execute__owner_replaced_since_he_signed__is_refused(scene: CouncilScene) -> None:
    signed = scene.signed(scene.draft(disable(scene)), [0, 1])
    first, second, _, successor, *_ = (dev_address(number) for number in OWNER_NUMBERS)
    listed = list(scene.standing(signed).account.owners)
    before = ([SENTINEL, *listed])[listed.index(second)]
    arguments = encode(["address"] * 3, [before, second, successor])
    data = keccak256(b"swapOwner(address,address,address)")[:4] + arguments
    send_as_safe(scene, scene.council.account, data)

    with pytest.raises(ConfigurationError, match=f"signed by {second}, who is no owner"):
        executed(scene, signed)

    assert first in scene.standing(signed).agreement.signed


def test_execute__done_by_others_meanwhile__is_refused(scene: CouncilScene) -> None:
    call = scene.call("pause", contract="GroupMessages")
    signed = scene.signed(scene.draft(call), [0, 1])
    send_as_safe(scene, call.target, call.calldata)

    with pytest.raises(ConfigurationError, match="yes already"):
        executed(scene, signed)


def test_execute__reverts_once_mined__fails_in_the_contracts_words(scene: CouncilScene) -> None:
    call = scene.call("pause", contract="GroupMessages")
    signed = scene.signed(scene.draft(disable(scene), call), [0, 1])
    execution = prepare(signed, scene.standing(signed), dev_address(PAYER))
    sent = sign_execution(execution, scene.sending, KeySigner("key", dev_secret(PAYER)))
    send_as_safe(scene, call.target, call.calldata)

    with pytest.raises(TransactionFailed, match=r"expected status 1, got a revert: EnforcedPause"):
        execute(execution, scene.sending, sent)

    assert is_enabled(scene)
