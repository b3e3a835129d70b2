"""Each function that a council may call: simulated, sent, and compared with what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chainkit.contracts.state import DEFAULT_ADMIN_ROLE
from chainkit.council.calls import FUNCTIONS, Call
from support.chains.chain import dev_address
from support.council.simulations import FIRST_HOLDER, KEY_ADDRESSES, KEYS, SimulatedCouncil, account

pytest_plugins = ["support.council.simulation_fixtures"]

REGISTRY, LOG = "NodeRegistry", "GroupMessages"
LONG_URL = "https://" + "a" * 80 + ".example"
SIXTH, SEVENTH = dev_address(6), dev_address(7)
ROLE = b"\x52" * 32
ADMIN = "roleMembers[DEFAULT_ADMIN_ROLE].inner"
MEMBERS = f"roleMembers[0x{ROLE.hex()}].inner"

Made = Callable[[SimulatedCouncil], Call]


@dataclass(frozen=True)
class Case:
    """A call, what it changes besides a Safe's nonce, and what was done before it.

    The lines hold ``{council}`` for the account, ``{new}`` and ``{old}`` for implementations, and
    ``{n}`` for how many administrators there are.
    """

    function: str
    made: Made
    lines: tuple[str, ...]
    before: tuple[Made, ...] = ()
    contract: str = REGISTRY


def made(contract: str, function: str, *arguments: object) -> Made:
    return lambda council: council.call(contract, function, *arguments)


def registry(function: str, *arguments: object, lines: tuple[str, ...]) -> Case:
    return Case(function, made(REGISTRY, function, *arguments), lines)


def log(
    function: str, *arguments: object, lines: tuple[str, ...], before: tuple[Made, ...] = ()
) -> Case:
    return Case(function, made(LOG, function, *arguments), lines, before, LOG)


def to_the_council(council: SimulatedCouncil) -> Call:
    return council.call(REGISTRY, "transferOwnership", "0x" + council.address.hex())


def held_by_the_council(council: SimulatedCouncil) -> Call:
    return council.call(REGISTRY, "transferFrom", FIRST_HOLDER, council.checksummed, 100)


def upgraded(council: SimulatedCouncil) -> Call:
    return council.call(LOG, "upgradeToAndCall", council.deploy_implementation(LOG), b"")


CASES = (
    registry("addNode", FIRST_HOLDER, KEYS[1], LONG_URL, lines=(
        "nodeCounter: 1 -> 2",
        f"owners[200]: (none) -> {FIRST_HOLDER}",
        f"balances[{FIRST_HOLDER}]: 1 -> 2",
        f"nodes[200].signingKeyPub: (none) -> 0x{KEYS[1].hex()}",
        f'nodes[200].httpAddress: (none) -> "{LONG_URL}"',
        "nodes[200].isHealthy: false -> true",
        f"nodeIdOfKey[{KEY_ADDRESSES[1]}]: 0 -> 200",
    )),
    registry("updateHealth", 100, False, lines=("nodes[100].isHealthy: true -> false",)),
    registry("transferFrom", FIRST_HOLDER, SIXTH, 100, lines=(
        f"owners[100]: {FIRST_HOLDER} -> {SIXTH}",
        f"balances[{SIXTH}]: 0 -> 1",
        f"balances[{FIRST_HOLDER}]: 1 -> 0",
    )),
    registry("setHttpAddressUpdatesOpen", True, lines=("httpAddressUpdatesOpen: false -> true",)),
    Case("updateHttpAddress", made(REGISTRY, "updateHttpAddress", 100, LONG_URL), (
        f'nodes[100].httpAddress: "https://node.example" -> "{LONG_URL}"',
    ), (made(REGISTRY, "setHttpAddressUpdatesOpen", True), held_by_the_council)),
    registry("transferOwnership", SIXTH, lines=(f"pendingOwner: (none) -> {SIXTH}",)),
    Case("acceptOwnership", made(REGISTRY, "acceptOwnership"), (
        "pendingOwner: {council} -> (none)",
    ), (to_the_council,)),
    log("pause", lines=("paused: false -> true",)),
    log("unpause", lines=("paused: true -> false",), before=(made(LOG, "pause"),)),
    log("grantRole", DEFAULT_ADMIN_ROLE, SEVENTH, lines=(
        f"{ADMIN}.values.length: {{n}} -> {{n+1}}",
        f"{ADMIN}.values[{{n}}]: (zero) -> {SEVENTH}",
        f"roles[DEFAULT_ADMIN_ROLE].hasRole[{SEVENTH}]: false -> true",
        f"{ADMIN}.positions[{SEVENTH}]: 0 -> {{n+1}}",
    )),
    log("revokeRole", ROLE, SEVENTH, before=(
        made(LOG, "grantRole", ROLE, SEVENTH), made(LOG, "grantRole", ROLE, SIXTH),
    ), lines=(
        f"{MEMBERS}.values.length: 2 -> 1",
        f"{MEMBERS}.values[0]: {SEVENTH} -> {SIXTH}",
        f"{MEMBERS}.values[1]: {SIXTH} -> (zero)",
        f"roles[0x{ROLE.hex()}].hasRole[{SEVENTH}]: true -> false",
        f"{MEMBERS}.positions[{SEVENTH}]: 1 -> 0",
        f"{MEMBERS}.positions[{SIXTH}]: 2 -> 1",
    )),
    log("setPayloadBounds", 2, 3000, lines=(
        "minPayloadSize: 0 -> 2", "maxPayloadSize: 262144 -> 3000",
    )),
    Case("upgradeToAndCall", upgraded, ("implementation: {old} -> {new}",), (), LOG),
)  # fmt: skip


def filled(council: SimulatedCouncil, case: Case, call: Call) -> list[str]:
    """Return a case's lines as the difference tells them, with a Safe's nonce."""
    administrators = 2 if council.safe else 1
    values = {
        "{council}": council.checksummed,
        "{n}": str(administrators),
        "{n+1}": str(administrators + 1),
        "{new}": str(call.arguments.get("newImplementation")),
        "{old}": council.implementation(LOG),
    }
    lines = [f"{case.contract} {line}" for line in case.lines]
    for name, value in values.items():
        lines = [line.replace(name, value) for line in lines]
    return [*lines, *(["Safe nonce: 0 -> 1"] if council.safe else [])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_simulate__each_function__names_every_slot_and_the_chain_becomes_it(
    simulated: SimulatedCouncil, case: Case
) -> None:
    for earlier in case.before:
        simulated.send_call(earlier(simulated))
    call = case.made(simulated)

    difference = simulated.simulate(call)
    simulated.try_it(call)

    assert [str(change) for change in difference.changes] == filled(simulated, case, call)
    difference.require_decoded()
    simulated.send_and_compare(call)


def test_cases__all_together__are_all_functions_of_a_council() -> None:
    assert {case.function for case in CASES} == {*FUNCTIONS[REGISTRY], *FUNCTIONS[LOG]}
    assert {case.contract for case in CASES} == {REGISTRY, LOG}


def test_simulate__new_owner_accepts__owner_and_offer_change(
    simulated: SimulatedCouncil,
) -> None:
    accept = simulated.call(REGISTRY, "acceptOwnership")
    simulated.send_call(simulated.call(REGISTRY, "transferOwnership", SIXTH))
    simulated.send_as(account(6), accept.target, accept.calldata)
    back = to_the_council(simulated)
    simulated.send_as(account(6), back.target, back.calldata)

    difference = simulated.simulate(accept)

    assert [str(change) for change in difference.changes][:2] == [
        f"NodeRegistry owner: {SIXTH} -> {simulated.checksummed}",
        f"NodeRegistry pendingOwner: {simulated.checksummed} -> (none)",
    ]
    simulated.send_and_compare(accept)


def test_simulate__key_that_ends_in_zeros__is_told_whole(simulated: SimulatedCouncil) -> None:
    key = next(one for one in KEYS if one[64:] == b"\0")
    call = simulated.call(REGISTRY, "addNode", SIXTH, key, "https://b.example")

    difference = simulated.simulate(call)

    assert f"nodes[200].signingKeyPub: (none) -> 0x{key.hex()}" in str(difference.changes[3])
    difference.require_decoded()
    simulated.send_and_compare(call)
