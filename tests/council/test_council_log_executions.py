"""`chainkit council log` where executions are hard to read, and for an account without a Safe."""

from __future__ import annotations

from pathlib import Path

from chainkit.council.calls import Call
from chainkit.council.proposal import sign_proposal, write_proposal_file
from chainkit.council.safe import InnerCall, Operation
from chainkit.council.signing import KeySigner
from localnet.accounts import COUNCIL
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.council.hostile_text import add_node_without_utf_8
from support.council.proposal_commands import with_node
from support.council.scene import (
    OWNER_NUMBERS,
    PAYER,
    REASON,
    CouncilScene,
    plain_scene,
    safe_scene,
)
from support.council.trail import (
    RELAY,
    exec_calldata,
    executed,
    flat,
    next_block,
    proposed,
    relayed,
    run_log,
    safe_transaction,
    send_execution,
    sent,
    signature,
    to_safe,
    trail_of,
)

OWNERS = [dev_address(number) for number in OWNER_NUMBERS]
NO_SIGNATURE = bytes(32)


def disable(scene: CouncilScene, node_id: int = 100) -> Call:
    return scene.call("updateHealth", node_id, False)


def inner(call: Call) -> InnerCall:
    return InnerCall(call.target, call.calldata)


def approved_by(owner: str) -> bytes:
    """Return what stands for the signature of an owner who approved the hash otherwise."""
    return bytes.fromhex(owner[2:]).rjust(32, b"\0") + NO_SIGNATURE + b"\x01"


def test_log__relayed_execution_of_a_safe_l2__is_read_from_its_event(scene: CouncilScene) -> None:
    first = next_block(scene)
    proposal = scene.signed(proposed(scene, disable(scene)), [0, 1])
    relayed(scene, exec_calldata(safe_transaction(scene, inner(disable(scene)))))

    content = trail_of(scene, first)

    (entry,) = content["transactions"]
    (act,) = entry["acts"]
    assert content["clean"]
    assert act["hash"] != "0x" + proposal.hash.hex()
    assert (act["nonce"], act["calls_found_in"]) == (0, "event")
    assert act["calls"][0]["function"] == "updateHealth"
    assert {each["address"] for each in act["signers"]} == {OWNERS[0], OWNERS[1]}
    assert act["cautions"] == ["executed through 0x00000000000000000000000000000000000000e1"]
    assert RELAY.hex() == act["cautions"][0].rpartition("0x")[2]


def test_log__relayed_execution_of_a_safe_that_tells_nothing__is_said_or_found_in_a_proposal(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    folder = tmp_path / "proposals"
    folder.mkdir()
    with safe_scene(local_chain, tmp_path, singleton="Safe") as scene:
        first = next_block(scene)
        proposal = scene.signed(proposed(scene, disable(scene)), [0, 2])
        transaction = proposal.transaction
        assert hasattr(transaction, "exec_calldata")
        relayed(scene, exec_calldata(transaction, (0, 2)))
        write_proposal_file(folder / "one.json", proposal, is_new=True)

        ((unknown,),) = [each["acts"] for each in trail_of(scene, first)["transactions"]]
        known_trail = trail_of(scene, first, "--proposals", folder)
        shown = run_log(scene, "--from-block", first)

    ((known,),) = [each["acts"] for each in known_trail["transactions"]]
    assert unknown["hash"] == known["hash"] == "0x" + proposal.hash.hex()
    assert (unknown["calls"], unknown["signers"], unknown["nonce"]) == ([], [], None)
    assert "executed through 0x00000000000000000000000000000000000000e1" in flat(shown)
    assert "the transaction does not tell its calls" in flat(shown)
    assert (known["calls_found_in"], known["nonce"], known["reason"]) == ("proposal", 0, REASON)
    assert {each["address"] for each in known["signers"]} == {OWNERS[0], OWNERS[2]}


def test_log__execution_that_failed__is_no_success(scene: CouncilScene) -> None:
    first = next_block(scene)
    # With gas set aside for it, a Safe keeps the nonce of what failed; else it reverts.
    send_execution(scene, safe_transaction(scene, inner(disable(scene, 900)), safe_tx_gas=100_000))
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 1]))

    content = trail_of(scene, first)
    shown = run_log(scene, "--from-block", first)

    failed, done = (act for each in content["transactions"] for act in each["acts"])
    assert (failed["nonce"], failed["succeeded"]) == (0, False)
    assert failed["calls"][0]["arguments"]["tokenId"] == "900"
    assert (done["nonce"], done["succeeded"]) == (1, True)
    assert "nonce 0, FAILURE, it changed nothing" in flat(shown)
    assert shown.code == 0


def test_log__safe_delegates_to_other_code__warns(scene: CouncilScene) -> None:
    first = next_block(scene)
    transaction = safe_transaction(
        scene, InnerCall(bytes(19) + b"\x77", b"\xde\xad\xbe\xef"), operation=Operation.DELEGATECALL
    )
    send_execution(scene, transaction)

    shown = run_log(scene, "--from-block", first)

    assert shown.code == 1
    assert "WARNING the Safe ran code that is not MultiSendCallOnly's" in flat(shown)
    assert "selector 0xdeadbeef, 4 bytes: code that acted as the Safe itself" in flat(shown)


def test_log__code_that_the_safe_ran_rewrote_its_nonce__warns_and_still_reads_all(
    scene: CouncilScene,
) -> None:
    first = next_block(scene)
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 1]))
    executed(scene, scene.signed(scene.draft(scene.call("updateHealth", 100, True)), [0, 1]))
    # Where the Safe keeps its nonce: three executions more than there were.
    account = "0x" + scene.council.account.hex()
    scene.chain.anvil.request("anvil_setStorageAt", account, f"0x{5:064x}", f"0x{5:064x}")
    scene.chain.mine()

    content = trail_of(scene, first)

    assert content["warnings"] == [
        "the Safe's nonce counts 5 executions in these blocks, its events 2:"
        " some are hidden, or other code has spoken for it"
    ]
    acts = [act for each in content["transactions"] for act in each["acts"]]
    assert [act["nonce"] for act in acts] == [0, 1]
    assert [each["warnings"] for each in content["transactions"]] == [
        [
            f"it has nonce {nonce}, where {nonce + 3} was counted: an execution is hidden,"
            " or the Safe's storage was rewritten"
        ]
        for nonce in (0, 1)
    ]


def test_log__text_that_is_no_utf_8__is_told_and_stops_nothing(scene: CouncilScene) -> None:
    first = next_block(scene)
    data = add_node_without_utf_8()
    send_execution(
        scene, safe_transaction(scene, InnerCall(scene.record.node_registry.address, data))
    )

    content = trail_of(scene, first)

    ((call,),) = [act["calls"] for entry in content["transactions"] for act in entry["acts"]]
    assert (call["function"], call["calldata"]) == (None, "0x" + data.hex())
    assert call["remark"].endswith("text that is no UTF-8")
    assert r"https://node.example/\udcff" in flat(run_log(scene, "--from-block", first))


def test_log__trailer_of_an_honest_proposal_behind_another_call__lends_no_reason(
    scene: CouncilScene, tmp_path: Path
) -> None:
    first = next_block(scene)
    honest = proposed(scene, disable(scene))
    write_proposal_file(tmp_path / "honest.json", honest, is_new=True)
    take_over = scene.call("transferOwnership", dev_address(2))
    data = take_over.calldata + honest.grounds.trailer
    send_execution(scene, safe_transaction(scene, InnerCall(take_over.target, data)))

    outcome = run_log(scene, "--from-block", first, "--proposals", tmp_path)

    assert "NodeRegistry.transferOwnership" in outcome.out
    assert REASON not in flat(outcome)
    assert "it bears the grounds of another proposal" in flat(outcome)


def test_log__owner_approved_on_the_chain__is_a_signer_only_with_his_transaction(
    scene: CouncilScene,
) -> None:
    first = next_block(scene)
    transaction = safe_transaction(scene, inner(disable(scene)))
    approval = to_safe(scene, "approveHash(bytes32)", transaction.hash)
    sent(scene, scene.council.account, approval.calldata, OWNER_NUMBERS[1])
    kinds = {
        OWNERS[0]: approved_by(OWNERS[0]),
        OWNERS[1]: approved_by(OWNERS[1]),
        # Behind the threshold a Safe looks at nothing: what stands here is the executor's claim.
        OWNERS[2]: approved_by(OWNERS[2]),
    }
    packed = b"".join(kinds[owner] for owner in sorted(OWNERS[:2], key=lambda each: int(each, 16)))
    data = transaction.exec_calldata(packed + kinds[OWNERS[2]])
    sent(scene, scene.council.account, data, OWNER_NUMBERS[0])

    approving, executing = trail_of(scene, first)["transactions"]

    assert approving["events"][0]["words"] == f"{OWNERS[1]} approved 0x{transaction.hash.hex()}"
    (act,) = executing["acts"]
    assert {each["address"]: (each["proved"], each["remark"]) for each in act["signers"]} == {
        OWNERS[0]: (True, "by executing it"),
        OWNERS[1]: (True, "approved on the chain"),
        OWNERS[2]: (False, "approved on the chain before, not seen here"),
    }


def test_log__owner_replaced_later__was_owner_when_he_signed(scene: CouncilScene) -> None:
    first = next_block(scene)
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 1]))
    before = "0x" + "1".rjust(40, "0")
    swap = to_safe(
        scene, "swapOwner(address,address,address)", before, OWNERS[0], dev_address(PAYER)
    )
    send_execution(scene, safe_transaction(scene, swap))
    # Behind the threshold: signed by somebody who was owner once.
    last = safe_transaction(scene, inner(scene.call("updateHealth", 100, True)))
    signers = sorted((1, 2), key=lambda owner: int(OWNERS[owner], 16))
    packed = b"".join(signature(owner, last.hash) for owner in (*signers, 0))
    send_execution(scene, last, last.exec_calldata(packed))

    content = trail_of(scene, first)
    shown = run_log(scene, "--from-block", first)

    acts = [act for each in content["transactions"] for act in each["acts"]]
    owners = [{each["address"]: each["was_owner"] for each in act["signers"]} for act in acts]
    assert owners == [
        {OWNERS[0]: True, OWNERS[1]: True},
        {OWNERS[0]: True, OWNERS[1]: True},
        {OWNERS[1]: True, OWNERS[2]: True, OWNERS[0]: False},
    ]
    assert acts[1]["calls"][0]["function"] == "swapOwner"
    assert flat(shown).count("NO OWNER THEN") == 1
    assert shown.code == 0


def test_log__plain_account__tells_its_calls_and_grounds(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    folder = tmp_path / "proposals"
    folder.mkdir()
    scene = plain_scene(local_chain, tmp_path)
    signer = KeySigner("key", dev_secret(COUNCIL))
    proposal = sign_proposal(proposed(scene, disable(scene)), scene.council, signer)
    transaction = executed(scene, proposal)
    write_proposal_file(folder / "one.json", proposal, is_new=True)

    content = trail_of(scene, 0, "--proposals", folder)
    shown = run_log(scene, "--proposals", folder)

    assert content["clean"]
    added, entry = (each for each in content["transactions"] if each["by"] == "council")
    assert added["acts"][0]["calls"][0]["function"] == "addNode"
    assert added["acts"][0]["grounds"] is None
    (act,) = entry["acts"]
    assert entry["executor"] == scene.council.address
    assert entry["transaction_hash"] == act["hash"] == "0x" + transaction.hex()
    assert (act["nonce"], act["signers"], act["reason"]) == (proposal.nonce, [], REASON)
    assert act["calls"][0]["arguments"] == {"tokenId": "100", "isHealthy": False}
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 100
    assert "2 by the council's account" in shown.out


def test_log__plain_account_that_is_no_more__warns_of_its_successor(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    scene = plain_scene(local_chain, tmp_path)
    first = next_block(scene)
    successor = 2
    offer = scene.call("transferOwnership", dev_address(successor))
    sent(scene, offer.target, offer.calldata, COUNCIL)
    sent(scene, offer.target, scene.call("acceptOwnership").calldata, successor)

    offered, accepted = trail_of(scene, first)["transactions"]

    assert (offered["by"], offered["warnings"]) == ("council", [])
    assert accepted["by"] == "others"
    assert accepted["warnings"] == [
        f"changed without the council's account, by {dev_address(successor)}"
    ]
