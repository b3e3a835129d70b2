"""A Safe's transaction before anybody signed: batches, reverts, and what is not supposed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from chainkit.chain import Endpoint
from chainkit.council.safe import InnerCall, SafeTransaction
from chainkit.council.safe.account import GUARD_SLOT, SafeAccount
from chainkit.council.simulation import (
    StateDifference,
    simulate_safe_transaction,
    try_safe_transaction,
)
from chainkit.council.simulation.trace import METHOD
from chainkit.errors import ConfigurationError, InconsistentAnswer, NoTracing, RefusedRequest
from support.chains.chain import dev_address
from support.chains.tampering import write_code, write_slot
from support.council.safes import COUNTER, SafeOnChain
from support.council.simulations import (
    ACCOUNTS,
    FIRST_HOLDER,
    KEYS,
    SimulatedCouncil,
)
from support.endpoints.fake_endpoint import FakeProvider, RpcError
from support.solidity import encode_call

SIXTH = dev_address(6)
pytest_plugins = ["support.council.simulation_fixtures"]
pytestmark = pytest.mark.parametrize("simulated_chain", ACCOUNTS[1:], indirect=True, scope="module")

COUNTER_CODE = bytes.fromhex("5f546001015f55336001555f3560025500")


@pytest.fixture
def council(simulated: SimulatedCouncil) -> SimulatedCouncil:
    return simulated


@pytest.fixture
def safe(council: SimulatedCouncil) -> SafeOnChain:
    assert council.safe is not None
    return council.safe


def simulation_of(
    council: SimulatedCouncil, transaction: SafeTransaction, account: SafeAccount, **answers: object
) -> StateDifference:
    """Simulate with an account that the chain has not, or an endpoint that answers otherwise."""
    assert council.safe is not None
    state, place = council.state, (transaction, account, council.safe.multi_send)
    if answers:
        state = replace(state, endpoint=other_endpoint(council, answers))
    return simulate_safe_transaction(state, council.chain.record, (), *place)


def other_endpoint(council: SimulatedCouncil, answers: dict[str, object]) -> Endpoint:
    """Return the chain's endpoint, but for the answers to some methods."""
    methods = ("eth_call", "eth_getBlockByHash", "eth_getBlockByNumber", METHOD)
    honest = {name: partial(council.chain.anvil.request, name) for name in methods}
    return FakeProvider({**honest, **answers}).endpoint()


def test_simulate__batch_of_seven_calls__names_all_that_they_change_together(
    council: SimulatedCouncil,
) -> None:
    calls = (
        council.call("NodeRegistry", "addNode", SIXTH, KEYS[1], "https://b.example"),
        council.call("NodeRegistry", "addNode", SIXTH, KEYS[2], "https://c.example"),
        council.call("NodeRegistry", "updateHealth", 200, False),
        council.call("NodeRegistry", "updateHealth", 100, False),
        council.call("NodeRegistry", "transferFrom", FIRST_HOLDER, SIXTH, 100),
        council.call("GroupMessages", "pause"),
        council.call("IdentityUpdates", "pause"),
    )

    difference = council.simulate(*calls)

    difference.require_decoded()
    lines = [str(change) for change in difference.changes]
    assert {line for line in lines if "nodes[" not in line} == {
        "GroupMessages paused: false -> true",
        "IdentityUpdates paused: false -> true",
        "NodeRegistry nodeCounter: 1 -> 3",
        f"NodeRegistry owners[100]: {FIRST_HOLDER} -> {SIXTH}",
        f"NodeRegistry owners[200]: (none) -> {SIXTH}",
        f"NodeRegistry owners[300]: (none) -> {SIXTH}",
        f"NodeRegistry balances[{SIXTH}]: 0 -> 3",
        f"NodeRegistry balances[{FIRST_HOLDER}]: 1 -> 0",
        *(line for line in lines if "nodeIdOfKey" in line),
        "Safe nonce: 0 -> 1",
    }
    assert [line for line in lines if "isHealthy" in line] == [
        "NodeRegistry nodes[100].isHealthy: true -> false",
        "NodeRegistry nodes[300].isHealthy: false -> true",
    ]
    council.send_and_compare(*calls)


def test_simulate__call_that_needs_an_earlier_one__blames_the_one_that_reverts(
    council: SimulatedCouncil,
) -> None:
    added = council.call("NodeRegistry", "addNode", SIXTH, KEYS[1], "https://b.example")
    good, bad = (council.call("NodeRegistry", "updateHealth", id_, False) for id_ in (200, 300))

    with pytest.raises(RefusedRequest, match=r"got ERC721NonexistentToken\(tokenId=300\)"):
        council.simulate(added, good, bad)


def test_try__call_within_a_batch_reverts__tells_each_call_that_does_by_itself(
    council: SimulatedCouncil,
) -> None:
    bad = council.call("NodeRegistry", "updateHealth", 300, False)
    worse = council.call("GroupMessages", "unpause")

    with pytest.raises(RefusedRequest) as caught:
        council.try_it(council.call("GroupMessages", "setPayloadBounds", 1, 2), bad, worse)

    assert caught.value.got == (
        "call 2 of NodeRegistry: ERC721NonexistentToken(tokenId=300); "
        "call 3 of GroupMessages: ExpectedPause()"
    )


@pytest.mark.parametrize(
    ("owners", "threshold", "words"),
    [
        ((dev_address(6), dev_address(7)), 2, "GS026"),
        (None, 1, "GS020"),
    ],
)
def test_simulate__approval_that_the_safe_does_not_take__is_refused_by_the_safe(
    council: SimulatedCouncil,
    safe: SafeOnChain,
    owners: tuple[str, ...] | None,
    threshold: int,
    words: str,
) -> None:
    account = safe.read()
    account = replace(account, owners=owners or account.owners, threshold=threshold)
    call = council.call("GroupMessages", "pause")

    for simulate in (simulate_safe_transaction, try_safe_transaction):
        given = [(call,)] if simulate is simulate_safe_transaction else []
        with pytest.raises(RefusedRequest, match=words):
            simulate(
                council.state, council.chain.record, *given,
                council.transaction(call), account, safe.multi_send,
            )  # type: ignore[call-arg]  # fmt: skip


def test_simulate__nonce_used_already__is_refused_by_the_safe(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    transaction = council.transaction(council.call("GroupMessages", "pause"))
    council.send(council.call("GroupMessages", "setPayloadBounds", 1, 2))

    with pytest.raises(RefusedRequest, match="GS02"):
        simulation_of(council, transaction, safe.read())


def test_simulate__later_nonce__is_taken_as_the_next(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    transaction = council.transaction(council.call("GroupMessages", "pause"))

    difference = simulation_of(council, replace(transaction, nonce=7), safe.read())

    assert [str(change) for change in difference.changes] == [
        "GroupMessages paused: false -> true",
        "Safe nonce: 7 -> 8",
    ]


def test_simulate__safe_changes_itself__names_its_own_slots(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    calldata = encode_call("changeThreshold(uint256)", 1)
    transaction = safe.transaction(InnerCall(safe.address, calldata))

    difference = simulation_of(council, transaction, safe.read())

    assert [str(change) for change in difference.changes] == [
        "Safe threshold: 2 -> 1",
        "Safe nonce: 0 -> 1",
    ]
    difference.require_decoded()


def test_simulate__guard_that_keeps_something__is_undecoded(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    write_code(council.chain, COUNTER, COUNTER_CODE)
    write_slot(council.chain, safe.address, GUARD_SLOT, int.from_bytes(COUNTER, "big"))

    difference = council.simulate(council.call("GroupMessages", "pause"))

    assert len(difference.undecoded) == 3
    stranger = "unknown contract 0x00000000000000000000000000000000000000C0 slot "
    assert all(line.startswith(stranger) for line in difference.undecoded)


def test_simulate__endpoint_ignores_overrides__demands_their_support(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    request = council.chain.anvil.request
    transaction = council.transaction(council.call("GroupMessages", "pause"))

    with pytest.raises(ConfigurationError, match="support of state overrides"):
        simulation_of(
            council, transaction, safe.read(),
            eth_call=lambda call, block, *overrides: request("eth_call", call, block),
        )  # fmt: skip


def test_simulate__endpoint_refuses_overrides__demands_their_support(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    transaction = council.transaction(council.call("GroupMessages", "pause"))

    with pytest.raises(ConfigurationError, match="support of state overrides, got too many"):
        simulation_of(
            council, transaction, safe.read(),
            eth_call=lambda *given: RpcError(-32602, "too many arguments, want at most 2"),
        )  # fmt: skip


def test_simulate__tracer_ignores_overrides__has_no_tracing(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    request = council.chain.anvil.request
    transaction = council.transaction(council.call("GroupMessages", "pause"))

    def traced(call: object, block: object, options: dict[str, object]) -> object:
        kept = {name: value for name, value in options.items() if name != "stateOverrides"}
        return request(METHOD, call, block, kept)

    with pytest.raises(NoTracing, match="a difference without the Safe's nonce"):
        simulation_of(council, transaction, safe.read(), **{METHOD: traced})


def test_simulate__tracer_leaves_out_a_slot_of_the_safes_transaction__is_inconsistent(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    request = council.chain.anvil.request
    log = "0x" + council.chain.record.group_messages.address.hex()
    transaction = council.transaction(council.call("GroupMessages", "pause"))

    def traced(call: dict[str, str], block: object, options: object) -> object:
        answer = request(METHOD, call, block, options)
        if call["to"] != log:
            del answer["pre"][log], answer["post"][log]
        return answer

    with pytest.raises(InconsistentAnswer, match="what the Safe's calls change"):
        simulation_of(council, transaction, safe.read(), **{METHOD: traced})


def test_simulate__endpoint_without_tracing__says_so_and_can_still_be_tried(
    council: SimulatedCouncil, safe: SafeOnChain
) -> None:
    call = council.call("GroupMessages", "pause")
    transaction, account = council.transaction(call), safe.read()
    refused = RpcError(-32601, f"the method {METHOD} does not exist/is not available")

    with pytest.raises(NoTracing, match="does not exist/is not available"):
        simulation_of(council, transaction, account, **{METHOD: refused})
    endpoint = other_endpoint(council, {METHOD: refused})
    state = replace(council.state, endpoint=endpoint)
    try_safe_transaction(state, council.chain.record, transaction, account, safe.multi_send)
