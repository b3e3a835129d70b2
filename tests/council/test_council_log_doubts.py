"""Hidden events and a chain that moves are told or refused, never passed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from eth_utils.crypto import keccak

from chainkit.council.calls import Call
from chainkit.council.log.events import SAFE_TOPICS
from chainkit.council.safe import known_versions
from chainkit.errors import InconsistentAnswer, RetryableChainError
from chainkit.types import BlockHeader, Log
from localnet.accounts import COUNCIL
from localnet.safe import npm_artifact
from support.council.scene import CouncilScene
from support.council.trail import HidingEndpoint, executed, next_block, run_log, sent, trail_of

_SUCCESS = keccak(text="ExecutionSuccess(bytes32,uint256)")
_NONCE_SLOT = 5
"""Where a Safe keeps its nonce."""
_HEALTH = keccak(text="NodeHealthUpdated(address,uint256,bool)")


class Forked(HidingEndpoint):
    """Answers from another branch once several blocks are asked for: when all was read."""

    def headers(self, blocks: Sequence[int | str]) -> list[BlockHeader | None]:
        found = super().headers(blocks)
        if len(blocks) > 1 and found[0] is not None:
            return [replace(found[0], hash=b"\xff" * 32), *found[1:]]
        return found


def pause(scene: CouncilScene) -> Call:
    return scene.call("pause", contract="GroupMessages")


def act(scene: CouncilScene, call: Call) -> None:
    executed(scene, scene.signed(scene.draft(call), [0, 1]))


def test_read__pause_past_the_safe_is_hidden__warns_by_what_the_contract_says(
    scene: CouncilScene,
) -> None:
    first = next_block(scene)
    # Within its payloads' events, an endpoint hides one of an administrator who is one still.
    sent(scene, pause(scene).target, pause(scene).calldata, COUNCIL)
    act(scene, scene.call("updateHealth", 100, False))

    def hidden(log: Log) -> bool:
        return log.address == scene.record.group_messages.address

    assert HidingEndpoint.of(scene, hidden).trail(scene, first).is_clean
    trail = HidingEndpoint.of(scene, hidden).trail(scene, 0)

    assert "GroupMessages paused: its events lead to no, it says yes: an event is hidden, or" in (
        " ".join(trail.alarms)
    )
    assert not trail.is_clean


def test_read__registry_event_is_hidden__is_refused(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, scene.call("updateHealth", 100, False))
    act(scene, scene.call("setHttpAddressUpdatesOpen", True))
    registry = scene.record.node_registry.address

    def hidden(log: Log) -> bool:
        return log.address == registry and log.topics[0] == _HEALTH

    with pytest.raises(InconsistentAnswer, match="NodeHealthUpdated"):
        HidingEndpoint.of(scene, hidden).trail(scene, first)


def test_read__execution_is_hidden__warns_by_the_safes_nonce(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, pause(scene))
    act(scene, scene.call("updateHealth", 100, False))
    hidden_block = first
    trail = HidingEndpoint.of(
        scene, lambda log: log.block_number == hidden_block and log.address != pause(scene).target
    )

    with pytest.raises(InconsistentAnswer, match="receipt of"):
        trail.trail(scene, first)

    found = HidingEndpoint.of(scene, lambda log: log.block_number == hidden_block).trail(
        scene, first
    )
    assert found.alarms == (
        "the Safe's nonce counts 2 executions in these blocks, its events 1:"
        " some are hidden, or other code has spoken for it",
    )


def test_log__nonce_rewritten_beyond_any__warns_and_ends(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, pause(scene))
    place = ("0x" + scene.council.account.hex(), f"0x{_NONCE_SLOT:064x}")
    scene.chain.anvil.request("anvil_setStorageAt", *place, f"0x{2**255:064x}")
    scene.chain.mine()

    content = trail_of(scene, first)

    (entry,) = content["transactions"]
    assert entry["acts"][0]["nonce"] == 0
    assert any(f"the Safe's nonce is {2**255}" in warning for warning in content["warnings"])


def test_read__reorg_meanwhile__is_refused(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, pause(scene))
    scene.chain.mine(2)
    changing = HidingEndpoint.of(scene, on_transaction=lambda: scene.chain.reorg(1))

    with pytest.raises(RetryableChainError):
        changing.trail(scene, first)

    assert len(HidingEndpoint.of(scene).trail(scene, first).entries) == 1


def test_read__block_is_another_at_the_end__is_refused(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, pause(scene))
    scene.chain.mine()

    with pytest.raises(InconsistentAnswer, match=f"block {first} at .*, got 0xffff"):
        Forked.of(scene).trail(scene, first)


def test_log__reorg_before__tells_of_the_chain_that_is(scene: CouncilScene) -> None:
    first = next_block(scene)
    act(scene, pause(scene))
    assert len(trail_of(scene, first)["transactions"]) == 1

    scene.chain.reorg(1)

    content = trail_of(scene, first)
    assert (content["transactions"], content["warnings"]) == ([], [])
    assert "transactions    none" in run_log(scene, "--from-block", first).out


@pytest.mark.parametrize("version", known_versions())
def test_topics__of_the_released_contracts__are_those_that_are_asked_for(version: str) -> None:
    released: set[bytes] = set()
    for name in ("Safe", "SafeL2"):
        for entry in npm_artifact(version, "", name)["abi"]:
            types = ",".join(each["type"] for each in entry.get("inputs", []))
            if entry["type"] == "event":
                released.add(keccak(text=f"{entry['name']}({types})"))
    since_1_5 = {keccak(text="ChangedModuleGuard(address)")}

    assert set(SAFE_TOPICS) - released == (since_1_5 if version == "1.4.1" else set())
    # These neither change a Safe nor execute: ether that came, a signed message, and the longer
    # form of an event of a module.
    assert released - set(SAFE_TOPICS) == {
        keccak(text="SafeReceived(address,uint256)"),
        keccak(text="SignMsg(bytes32)"),
        keccak(text="SafeModuleTransaction(address,address,uint256,bytes,uint8)"),
    }
