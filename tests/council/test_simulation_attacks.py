"""Contracts that do something else than they say: nothing of it goes unseen."""

from __future__ import annotations

import pytest

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState, erc7201_slot
from chainkit.council.simulation import Message, simulate_message
from chainkit.errors import ChainError, ConfigurationError, RefusedRequest, UndecodedState
from support.chains.chain import dev_address
from support.chains.tampering import change_last_byte, write_code
from support.council.safes import COUNTER
from support.council.simulations import FIRST_HOLDER, KEYS, SimulatedCouncil, account

pytest_plugins = ["support.council.simulation_fixtures"]

SEQUENCED_LOG = erc7201_slot("chainkit.storage.SequencedLog")
STRANGER = b"\x77" * 20
CREATION = bytes.fromhex("5f5f5ff050")
"""CREATE of an account without code."""

PAYMENT = bytes.fromhex("5f5f5f5f600573" + STRANGER.hex() + "5af150")
"""CALL of a stranger with 5 wei."""


def kept(slot: int, value: int) -> bytes:
    """Return code that writes a slot."""
    return b"\x7f" + value.to_bytes(32, "big") + b"\x7f" + slot.to_bytes(32, "big") + b"\x55"


def account_of(checksummed: str) -> bytes:
    return bytes.fromhex(checksummed[2:])


def undecoded(council: SimulatedCouncil, code: bytes) -> list[str]:
    """Let GroupMessages run other code, and return what of a call of it cannot be named."""
    write_code(council.chain, council.chain.record.group_messages.address, code + b"\0")
    difference = council.simulate(council.call("GroupMessages", "pause"))
    with pytest.raises(UndecodedState) as caught:
        difference.require_decoded()
    assert caught.value.got == "; ".join(difference.undecoded)
    return list(difference.undecoded)


def test_simulate__slot_of_no_variable__is_undecoded(simulated: SimulatedCouncil) -> None:
    (line,) = undecoded(simulated, kept(0x1234, 5))

    place = simulated.call("GroupMessages", "pause").target_address
    assert line == (f"GroupMessages {place} slot 0x{0x1234:064x}: 0x{0:064x} -> 0x{5:064x}")


def test_simulate__slot_beside_that_of_a_mapping__is_undecoded(simulated: SimulatedCouncil) -> None:
    slot = erc7201_slot("openzeppelin.storage.AccessControl") + 1

    (line,) = undecoded(simulated, kept(slot, 5))

    assert f"slot 0x{slot:064x}" in line


def test_simulate__bits_behind_the_last_variable_of_a_slot__are_undecoded(
    simulated: SimulatedCouncil,
) -> None:
    log = simulated.chain.record.group_messages.address
    word = simulated.state.word(log, SEQUENCED_LOG)

    (line,) = undecoded(simulated, kept(SEQUENCED_LOG, word | 1 | 1 << 72))

    assert f"slot 0x{SEQUENCED_LOG:064x}" in line


def test_simulate__flag_that_is_neither_true_nor_false__is_undecoded(
    simulated: SimulatedCouncil,
) -> None:
    log = simulated.chain.record.group_messages.address
    word = simulated.state.word(log, SEQUENCED_LOG)

    (line,) = undecoded(simulated, kept(SEQUENCED_LOG, word | 2))

    assert f"slot 0x{SEQUENCED_LOG:064x}" in line


def test_simulate__another_account_is_made__is_undecoded(simulated: SimulatedCouncil) -> None:
    lines = undecoded(simulated, kept(SEQUENCED_LOG, 1) + CREATION)

    place = simulated.call("GroupMessages", "pause").target_address
    assert any(line.startswith(f"account {place} nonce: ") for line in lines)
    assert any(line.endswith(" nonce: 0 -> 1") and place not in line for line in lines)


def test_simulate__ether_is_paid__is_undecoded(simulated: SimulatedCouncil) -> None:
    place = simulated.call("GroupMessages", "pause").target_address
    simulated.chain.anvil.request("anvil_setBalance", place, "0x9")

    lines = undecoded(simulated, kept(SEQUENCED_LOG, 1) + PAYMENT)

    assert set(lines) == {
        f"account {place} balance: 9 -> 4",
        "account 0x7777777777777777777777777777777777777777 balance: 0 -> 5",
    }


def test_simulate__proxy_that_runs_code_of_no_release__is_undecoded(
    simulated: SimulatedCouncil,
) -> None:
    change_last_byte(simulated.chain, account_of(simulated.implementation("GroupMessages")))

    difference = simulated.simulate(simulated.call("GroupMessages", "pause"))

    (line,) = difference.undecoded
    assert line.startswith("GroupMessages (code of no known release) 0x")
    assert f"slot 0x{SEQUENCED_LOG:064x}" in line


def test_simulate__upgrade_to_code_of_no_release__names_the_implementation_alone(
    simulated: SimulatedCouncil,
) -> None:
    code = simulated.deploy_implementation("GroupMessages")
    change_last_byte(simulated.chain, account_of(code))
    upgrade = simulated.call("GroupMessages", "upgradeToAndCall", code, b"")
    initialize = shipped_interface("GroupMessages").encode("setPayloadBounds", 1, 2)
    more = simulated.call("GroupMessages", "upgradeToAndCall", code, initialize)

    simulated.simulate(upgrade).require_decoded()
    (line,) = simulated.simulate(more).undecoded

    assert f"slot 0x{SEQUENCED_LOG:064x}" in line


def test_simulate__contract_of_no_record__is_undecoded(simulated: SimulatedCouncil) -> None:
    write_code(simulated.chain, COUNTER, kept(0, 1) + b"\0")
    message = Message(account(1), COUNTER, b"")

    difference = simulate_message(simulated.state, simulated.chain.record, (), message)

    assert difference.changes == ()
    assert difference.undecoded == (
        "unknown contract 0x00000000000000000000000000000000000000C0 "
        f"slot 0x{0:064x}: 0x{0:064x} -> 0x{1:064x}",
    )


def test_simulate__nothing_changes__is_refused(simulated: SimulatedCouncil) -> None:
    with pytest.raises(ConfigurationError, match="no changed slot"):
        simulated.simulate(simulated.call("NodeRegistry", "updateHealth", 100, True))


@pytest.mark.parametrize(
    ("contract", "function", "arguments", "words"),
    [
        ("NodeRegistry", "updateHealth", (300, True), "ERC721NonexistentToken(tokenId=300)"),
        (
            "NodeRegistry",
            "addNode",
            (FIRST_HOLDER, KEYS[0], "https://x.example"),
            "SigningKeyAlreadyUsed(nodeId=100)",
        ),
        ("GroupMessages", "unpause", (), "ExpectedPause()"),
        (
            "GroupMessages",
            "setPayloadBounds",
            (5, 4),
            "InvalidPayloadBounds(minimum=5, maximum=4, cap=1048576)",
        ),
    ],
)
def test_simulate__call_reverts__is_told_in_the_contracts_words(
    simulated: SimulatedCouncil,
    contract: str,
    function: str,
    arguments: tuple[object, ...],
    words: str,
) -> None:
    call = simulated.call(contract, function, *arguments)

    with pytest.raises(RefusedRequest) as caught:
        simulated.simulate(call)
    with pytest.raises(RefusedRequest) as tried:
        simulated.try_it(call)

    assert caught.value.got == words
    assert str(tried.value.got).endswith(words)


def test_simulate__council_without_the_role__is_told_so(simulated: SimulatedCouncil) -> None:
    call = simulated.call("GroupMessages", "pause")
    message = Message(account(7), call.target, call.calldata)

    with pytest.raises(RefusedRequest, match="AccessControlUnauthorizedAccount") as caught:
        simulate_message(simulated.state, simulated.chain.record, [call], message)

    assert dev_address(7) in str(caught.value)


def test_simulate__url_that_could_rewrite_the_screen__is_shown_as_plain_text(
    simulated: SimulatedCouncil,
) -> None:
    url = "https://good.example\x1b[2K\r\u202emoc.live"
    call = simulated.call("NodeRegistry", "addNode", FIRST_HOLDER, KEYS[1], url)

    lines = [str(change) for change in simulated.simulate(call).changes]

    assert all(line.isascii() and line.isprintable() for line in lines)
    assert any(r"good.example\x1b[2K\x0d" in line for line in lines)


def test_simulate__block_that_the_chain_gave_up__is_refused(simulated: SimulatedCouncil) -> None:
    simulated.chain.mine()
    given_up = ContractState(simulated.chain.endpoint, simulated.chain.head().reference)
    simulated.chain.reorg(1)
    call = simulated.call("GroupMessages", "pause")
    message = Message(simulated.address, call.target, call.calldata)

    with pytest.raises(ChainError, match="eth_call"):
        simulate_message(given_up, simulated.chain.record, [call], message)
