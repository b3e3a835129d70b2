"""Each check alone stops a wrong proposal: before it is drafted or sent, and afterwards."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account

from chainkit.chain import sending
from chainkit.chain.sending import SignedTransaction
from chainkit.council.proposal import Proposal, SafeSettings, execution, status
from chainkit.council.proposal.simulation import simulate_proposal
from chainkit.council.safe import InnerCall, known_contracts
from chainkit.council.signing import KeySigner
from chainkit.errors import ConfigurationError, TransactionFailed, UndecodedState
from chainkit.types import Receipt
from support.chains.chain import dev_address, dev_secret
from support.command_line import run
from support.council.offline import in_one_line, paper
from support.council.proposals import SECRETS, proposed
from support.council.scene import PAYER, CouncilScene
from support.council.trail import exec_calldata, safe_transaction


def disabling(scene: CouncilScene) -> Proposal:
    call = scene.call("updateHealth", 100, False)
    return scene.signed(scene.draft(call), [0, 1])


def execute(scene: CouncilScene, proposal: Proposal) -> Receipt:
    stands = scene.standing(proposal)
    prepared = execution.prepare(proposal, stands, dev_address(PAYER))
    payer = KeySigner("key", dev_secret(PAYER))
    signed = execution.sign_execution(prepared, scene.sending, payer)
    return execution.execute(prepared, scene.sending, signed)


def cheap(scene: CouncilScene, data: bytes) -> bytes:
    """Sign a transaction to the Safe that a block has after all that pay more."""
    nonce = int(scene.chain.anvil.request("eth_getTransactionCount", dev_address(9), "latest"), 16)
    fields = {"to": scene.council.account, "data": data, "gas": 1_000_000, "nonce": nonce}
    fees = {"maxFeePerGas": 10**9, "maxPriorityFeePerGas": 0}
    transaction = fields | fees | {"chainId": scene.record.chain_id}
    return bytes(Account.sign_transaction(transaction, dev_secret(9)).raw_transaction)


def with_receipt(monkeypatch: pytest.MonkeyPatch, change: Callable[[Receipt], Receipt]) -> None:
    """Let the endpoint tell another receipt than the chain has."""
    wait = sending.wait_for_receipt

    def wait_and_change(*arguments: object) -> Receipt:
        return change(wait(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(sending, "wait_for_receipt", wait_and_change)


def test_execute__receipt_without_the_safes_event__is_no_success(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_events(receipt: Receipt) -> Receipt:
        safe = scene.council.account
        return replace(receipt, logs=tuple(log for log in receipt.logs if log.address != safe))

    with_receipt(monkeypatch, without_events)

    with pytest.raises(TransactionFailed, match="ExecutionSuccess of 0x"):
        execute(scene, disabling(scene))


def test_execute__receipt_with_the_event_of_another_hash__is_no_success(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_another(receipt: Receipt) -> Receipt:
        logs = (
            log._replace(topics=(log.topics[0], b"\x07" * 32))
            if log.address == scene.council.account and len(log.topics) == 2
            else log
            for log in receipt.logs
        )
        return replace(receipt, logs=tuple(logs))

    with_receipt(monkeypatch, of_another)

    with pytest.raises(TransactionFailed, match="ExecutionSuccess of 0x"):
        execute(scene, disabling(scene))


def test_execute__undone_in_the_same_block__is_no_success(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = disabling(scene)
    undo = scene.call("updateHealth", 100, True)
    later = safe_transaction(scene, InnerCall(undo.target, undo.calldata), nonce=proposal.nonce + 1)
    send = sending.send_transaction

    def send_and_undo(endpoint: object, signed: SignedTransaction) -> None:
        scene.chain.pause_mining()
        send(scene.endpoint, signed)
        scene.chain.send_raw(cheap(scene, exec_calldata(later)))
        scene.chain.mine()

    monkeypatch.setattr(sending, "send_transaction", send_and_undo)

    with pytest.raises(TransactionFailed, match="node 100 status: expected disabled, got enabled"):
        execute(scene, proposal)


def test_simulate__contract_runs_code_that_nobody_knows__is_undecoded(scene: CouncilScene) -> None:
    implementation = scene.record.group_messages.implementation
    assert implementation is not None
    proposal = scene.draft(scene.call("pause", contract="GroupMessages"))
    code = scene.endpoint.code(implementation.address, scene.endpoint.head().reference)
    place = "0x" + implementation.address.hex()
    scene.chain.anvil.request("anvil_setCode", place, "0x" + code.hex() + "00")
    scene.chain.mine()

    with pytest.raises(UndecodedState):
        simulate_proposal(proposal, scene.account(scene.endpoint.head()), scene.record)


def test_sign__proposal_that_has_expired__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path, proposal=proposed(expires=int(time.time()) - 60))

    outcome = scene.sign(*scene.keystore(SECRETS[0]))

    assert outcome.code == 2
    assert "got one that expired" in in_one_line(outcome.err)
    assert "To sign" not in outcome.err


def test_stand__safe_of_another_release_than_the_council_files__is_refused(
    scene: CouncilScene,
) -> None:
    multi_send = known_contracts()["MultiSendCallOnly", "1.5.0"].address
    assert multi_send is not None
    newer = replace(scene.council, safe=SafeSettings("1.5.0", multi_send))

    with pytest.raises(ConfigurationError, match=r"1\.5\.0.*1\.4\.1"):
        replace(scene, council=newer).standing(disabling(scene))


def test_stand__safe_computes_another_hash__is_refused(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "hash_by_contract", lambda *_: b"\x07" * 32)

    with pytest.raises(ConfigurationError, match="SafeTx hash by"):
        scene.standing(disabling(scene))


def test_propose__slot_that_has_no_name__writes_no_file(scene: CouncilScene) -> None:
    implementation = scene.record.group_messages.implementation
    assert implementation is not None
    code = scene.endpoint.code(implementation.address, scene.endpoint.head().reference)
    place = "0x" + implementation.address.hex()
    scene.chain.anvil.request("anvil_setCode", place, "0x" + code.hex() + "00")
    path = scene.folder / "pause.json"

    outcome = run(
        *("contracts", "pause", "GroupMessages", "--propose", path, "--reason", "a drill"),
        *(*scene.rpc, *scene.files),
    )

    assert outcome.code == 2, outcome.out
    assert not path.exists()
