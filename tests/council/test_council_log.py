"""`chainkit council log`: the trail must be what was done, by a Safe and past it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainkit.council.calls import Call
from chainkit.council.proposal import write_proposal_file
from chainkit.council.safe import InnerCall, known_versions
from localnet.accounts import COUNCIL
from support.chains.chain import LocalChain, calldata_of, dev_address
from support.council.proposal_commands import with_node
from support.council.scene import (
    OWNER_NUMBERS,
    PAYER,
    REASON,
    CouncilScene,
    safe_scene,
    send_as_safe,
)
from support.council.trail import (
    EVIDENCE,
    executed,
    flat,
    next_block,
    proposed,
    run_log,
    safe_transaction,
    send_execution,
    sent,
    to_safe,
    trail_of,
)

HOLDER = 9
OWNERS = [dev_address(number) for number in OWNER_NUMBERS]


def disable(scene: CouncilScene) -> Call:
    return scene.call("updateHealth", 100, False)


def pause_both(scene: CouncilScene) -> list[Call]:
    return [scene.call("pause", contract=name) for name in ("GroupMessages", "IdentityUpdates")]


def signers(act: dict[str, Any]) -> list[str]:
    return [each["address"] for each in act["signers"] if each["proved"] and each["was_owner"]]


def functions(act: dict[str, Any]) -> list[str | None]:
    return [each["function"] for each in act["calls"]]


@pytest.mark.parametrize("version", known_versions())
def test_log__proposals_executed__tells_who_signed_who_sent_and_why(
    version: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    folder = tmp_path / "proposals"
    folder.mkdir()
    with safe_scene(local_chain, tmp_path, version, threshold=3, owners=5) as scene:
        first = next_block(scene)
        one = scene.signed(proposed(scene, disable(scene)), [0, 2, 4])
        transaction = executed(scene, one)
        two = scene.signed(scene.draft(*pause_both(scene)), [1, 2, 3])
        executed(scene, two)
        write_proposal_file(folder / "one.json", one, is_new=True)
        (folder / "other.json").write_text("{}")

        content = trail_of(scene, first, "--proposals", folder)
        shown = run_log(scene, "--from-block", first, "--proposals", folder)

    assert content["clean"]
    assert [each["by"] for each in content["transactions"]] == ["council", "council"]
    earlier, later = content["transactions"]
    assert earlier["executor"] == dev_address(PAYER)
    assert earlier["transaction_hash"] == "0x" + transaction.hex()
    assert earlier["block"]["number"] == first
    assert [each["event"] for each in earlier["events"]] == ["NodeHealthUpdated"]
    (act,), (batch,) = earlier["acts"], later["acts"]
    assert act["hash"] == "0x" + one.hash.hex()
    assert (act["nonce"], act["succeeded"], act["calls_found_in"]) == (0, True, "calldata")
    assert functions(act) == ["updateHealth"]
    assert act["calls"][0]["arguments"] == {"tokenId": "100", "isHealthy": False}
    assert set(signers(act)) == {OWNERS[0], OWNERS[2], OWNERS[4]}
    digest = "0x" + one.grounds.digest.hex()
    assert act["grounds"] == {"digest": digest, "expires": one.grounds.expires}
    assert act["reason"] == REASON
    assert act["evidence"] == [{"name": EVIDENCE.name, "sha256": EVIDENCE.sha256}]
    assert (batch["nonce"], functions(batch)) == (1, ["pause", "pause"])
    assert set(signers(batch)) == {OWNERS[1], OWNERS[2], OWNERS[3]}
    assert batch["grounds"]["digest"] == "0x" + two.grounds.digest.hex()
    assert (batch["reason"], batch["evidence"]) == (None, None)
    assert [each["event"] for each in later["events"]] == ["Paused", "Paused"]
    assert len(content["proposals_not_read"]) == 1

    assert shown.code == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 100
    assert f"signed by       {OWNERS[2]} (owner 3)" in shown.out
    assert "call            NodeRegistry.updateHealth(tokenId=100, isHealthy=false)" in shown.out
    assert f'reason          > "{REASON}"' in shown.out
    assert f"evidence        sha256 {EVIDENCE.sha256}\n" in shown.out
    assert f'                > "{EVIDENCE.name}"\n' in shown.out
    assert shown.out.index("nonce           0, success") < shown.out.index("nonce           1,")
    assert "transactions    2 by the council's account" in shown.out


def test_log__deployment_and_hand_over__are_told_apart(scene: CouncilScene) -> None:
    content = trail_of(scene, 0)

    kinds = [each["by"] for each in content["transactions"]]
    assert set(kinds[: kinds.index("others")]) == {"deployment"}
    others = [each for each in content["transactions"] if each["by"] == "others"]
    assert all(
        each["warnings"] == [f"changed without the council's account, by {dev_address(COUNCIL)}"]
        for each in others
    )
    events = [event["event"] for each in others for event in each["events"]]
    assert events == [
        "NodeAdded", "NodeUpdated", "OwnershipTransferStarted", "RoleGranted", "RoleGranted"
    ]  # fmt: skip
    safe = [each for each in content["transactions"] if each["events"][0]["event"] == "SafeSetup"]
    assert [each["warnings"] for each in safe] == [[]]


def test_log__changed_past_the_safe__warns_and_exits_1(scene: CouncilScene) -> None:
    first = next_block(scene)
    # The administrator that the deployment named is one still.
    pause, _ = pause_both(scene)
    sent(scene, pause.target, pause.calldata, COUNCIL)

    shown = run_log(scene, "--from-block", first)

    assert shown.code == 1
    former = dev_address(COUNCIL)
    assert f"WARNING changed without the council's account, by {former}" in flat(shown)
    assert "1 past the council's account" in shown.out
    assert "warnings        1" in shown.out


def test_log__safe_acted_without_an_execution__warns(scene: CouncilScene) -> None:
    first = next_block(scene)
    call = disable(scene)
    send_as_safe(scene, call.target, call.calldata)

    (entry,) = trail_of(scene, first)["transactions"]

    assert entry["warnings"] == [
        "the Safe acted, and its owners executed nothing in this transaction"
    ]


def test_log__module_acted__warns_of_module_and_of_what_enabled_it(scene: CouncilScene) -> None:
    first, module = next_block(scene), 2
    enabling = to_safe(scene, "enableModule(address)", dev_address(module))
    send_execution(scene, safe_transaction(scene, enabling))
    call = disable(scene)
    acting = calldata_of(
        "execTransactionFromModule(address,uint256,bytes,uint8)",
        call.target_address, 0, call.calldata, 0,
    )  # fmt: skip
    sent(scene, scene.council.account, acting, module)

    content = trail_of(scene, first)

    enabled, acted = content["transactions"]
    assert enabled["warnings"] == []
    assert enabled["cautions"] == [
        "the Safe itself is another since: look at its owners, modules and guards"
    ]
    assert [each["event"] for each in enabled["events"]] == ["EnabledModule"]
    assert "no call that a council makes" in enabled["acts"][0]["calls"][0]["remark"]
    assert acted["warnings"] == [
        f"the Safe: module {dev_address(module)} acted for it",
        "the Safe acted, and its owners executed nothing in this transaction",
    ]
    assert content["cautions"] == [f"module {dev_address(module)} acts without any owner"]


def test_log__safe_changed_without_its_owners__warns(scene: CouncilScene) -> None:
    first = next_block(scene)
    change = calldata_of("changeThreshold(uint256)", 1)
    send_as_safe(scene, scene.council.account, change)

    (entry,) = trail_of(scene, first)["transactions"]

    assert entry["warnings"] == [
        "the Safe was changed, and its owners executed nothing in this transaction"
    ]
    assert entry["events"][0]["words"] == "threshold set to 1"


def test_log__holder_changes_its_address__is_ordinary_and_cannot_move_the_cursor(
    scene: CouncilScene,
) -> None:
    opened = scene.signed(scene.draft(scene.call("setHttpAddressUpdatesOpen", True)), [0, 1])
    executed(scene, opened)
    first = next_block(scene)
    update = calldata_of("updateHttpAddress(uint256,string)", 100, "https://a\x1b[2J\u202e.example")
    sent(scene, scene.record.node_registry.address, update, HOLDER)

    shown = run_log(scene, "--from-block", first)

    assert shown.code == 0
    assert "1 by a node's holder" in shown.out
    assert f"sent by         {dev_address(HOLDER)} (not in your council file)" in shown.out
    assert r"HTTP address changed to https://a\x1b[2J\u202e.example" in shown.out
    assert shown.out.replace("\n", "").replace("…", "").isascii()
    assert shown.out.replace("\n", "").isprintable()


def test_log__call_that_no_council_makes__is_shown_raw_and_marked(scene: CouncilScene) -> None:
    first = next_block(scene)
    stranger = bytes(19) + b"\x77"
    foreign = InnerCall(stranger, bytes.fromhex("deadbeef"))
    send_execution(scene, safe_transaction(scene, InnerCall(*call_parts(disable(scene))), foreign))

    content = trail_of(scene, first)
    shown = run_log(scene, "--from-block", first)

    (act,) = content["transactions"][0]["acts"]
    assert functions(act) == ["updateHealth", None]
    assert act["calls"][1]["target"] == "0x" + stranger.hex()
    assert act["calls"][1]["calldata"] == "0xdeadbeef"
    assert act["grounds"] is None
    assert "selector 0xdeadbeef, 4 bytes: no call that a council makes" in flat(shown)
    assert "grounds         none" in shown.out


def test_log__from_a_later_block__counts_nonces_from_the_end(scene: CouncilScene) -> None:
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 1]))
    first = next_block(scene)
    executed(scene, scene.signed(scene.draft(scene.call("updateHealth", 100, True)), [1, 2]))
    last = scene.endpoint.head().number
    executed(scene, scene.signed(scene.draft(disable(scene)), [0, 2]))

    content = trail_of(scene, first, "--block", last)

    (entry,) = content["transactions"]
    assert (entry["acts"][0]["nonce"], content["block"]["number"]) == (1, last)
    assert set(signers(entry["acts"][0])) == {OWNERS[1], OWNERS[2]}


def test_log__executed_after_it_expired__is_said(scene: CouncilScene) -> None:
    first = next_block(scene)
    proposal = scene.signed(scene.draft(disable(scene), days=1), [0, 1])
    scene.chain.anvil.request("evm_increaseTime", 86_400 + 60)
    transaction = proposal.transaction
    assert hasattr(transaction, "exec_calldata")
    send_execution(scene, transaction)

    (entry,) = trail_of(scene, first)["transactions"]

    assert entry["cautions"] == ["executed after it had expired"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--block", 10**9], "(the head)"),
        (["--from-block", 10**9], "where the log ends"),
        (["--proposals", "/nowhere"], "a folder"),
    ],
)
def test_log__option_that_cannot_be__exits_2(
    options: list[object], words: str, scene: CouncilScene
) -> None:
    outcome = run_log(scene, *options)

    assert outcome.code == 2
    assert words in outcome.err


def call_parts(call: Call) -> tuple[bytes, bytes]:
    return call.target, call.calldata
