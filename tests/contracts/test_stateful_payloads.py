"""Any sequence of calls, reorgs and reverts leaves both payload contracts as the model says.

`FUZZ_SEED=… FUZZ_EXAMPLES=…` runs other and more examples than the fixed ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from chainkit.chain.parsing import parse_log
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from support.chains.chain_machine import ACTORS, Action, ChainMachine, run_machine
from support.chains.mined import ZERO, MinedChain, deploy_compiled, mined_chain
from support.chains.payload_model import (
    ADMIN_ROLE,
    GROUP_MESSAGES,
    IDENTITY_UPDATES,
    INITIALIZE_CALL,
    OTHER_ROLE,
    PAUSE_CALL,
    PAYLOAD_SIZE_CAP,
    PayloadContract,
    PayloadModel,
)
from support.solidity import Transaction, encode_call

# Hypothesis looks for a shorter example for as long as five minutes, the usual limit.
pytestmark = pytest.mark.timeout(0 if "FUZZ_SEED" in os.environ else 600)

EXAMPLES, STEPS = 20, 20
FIRST_BOUNDS = (1, 64)

ACCOUNTS = [f"account {number}" for number in range(1, ACTORS + 1)]
PROXIES = ["group messages", "identity updates"]
IMPLEMENTATIONS = [f"{proxy} {version}" for proxy in PROXIES for version in (1, 2, "elsewhere")]

# An administrator most of the time, or nearly everything would be refused.
senders = st.sampled_from([*["an admin"] * 2 * len(ACCOUNTS), *ACCOUNTS])
proxies = st.sampled_from(PROXIES)
accounts = st.sampled_from([*ACCOUNTS, *ACCOUNTS, "self", "zero", *PROXIES])
roles = st.sampled_from([ADMIN_ROLE, ADMIN_ROLE, ADMIN_ROLE, OTHER_ROLE])
sizes = st.sampled_from([0, 1, 2, 31, 32, 33, 64])
large_sizes = st.sampled_from([PAYLOAD_SIZE_CAP, PAYLOAD_SIZE_CAP + 1, 2**32 - 1])


@dataclass(frozen=True)
class Name:
    """An argument that is an address, by its name in the model."""

    name: str


@dataclass(frozen=True)
class Call:
    sender: str
    target: str
    signature: str
    arguments: tuple[Any, ...] = ()

    def __call__(self, model: PayloadModel) -> Transaction:
        to = model.names[self.target]
        arguments = tuple(
            model.address(item.name, to) if isinstance(item, Name) else item
            for item in self.arguments
        )
        return Transaction(model.address(self.sender, to), to, self.signature, arguments)


@dataclass(frozen=True)
class Publish:
    """A payload whose size is at, or one byte beside, a bound as it is then."""

    sender: str
    target: str
    at_maximum: bool
    offset: int
    identifier: bytes

    def __call__(self, model: PayloadModel) -> Transaction:
        contract = model.contracts[model.names[self.target]]
        bound = contract.maximum if self.at_maximum else contract.minimum
        payload = b"\x2a" * max(0, bound + self.offset)
        sender = model.address(self.sender, contract.address)
        signature = contract.interface.publish
        return Transaction(sender, contract.address, signature, (self.identifier, payload))


def calls(
    signature: str,
    *arguments: st.SearchStrategy[Any],
    targets: st.SearchStrategy[str] = proxies,
) -> st.SearchStrategy[Call]:
    return st.builds(Call, senders, targets, st.just(signature), st.tuples(*arguments))


def publications_to(targets: st.SearchStrategy[str]) -> st.SearchStrategy[Publish]:
    identifiers = st.binary(min_size=32, max_size=32)
    return st.builds(Publish, senders, targets, st.booleans(), st.integers(-1, 1), identifiers)


def upgrades_of(target: str) -> st.SearchStrategy[Call]:
    """Half of the time to an implementation of this very contract."""
    own = st.sampled_from([f"{target} 1", f"{target} 2"]).map(Name)
    others = st.sampled_from([*IMPLEMENTATIONS, *PROXIES, "sequence", "account 1"]).map(Name)
    data = st.sampled_from([b"", b"", b"", PAUSE_CALL, INITIALIZE_CALL])
    return calls("upgradeToAndCall(address,bytes)", own | others, data, targets=st.just(target))


names = accounts.map(Name)
members = st.just(Name("an admin")) | names
publications = publications_to(proxies)
pauses = st.sampled_from(["pause()", "unpause()"]).flatmap(calls)
bounds = calls("setPayloadBounds(uint32,uint32)", sizes, sizes | sizes | large_sizes) | calls(
    "setPayloadBounds(uint32,uint32)", sizes | large_sizes, sizes | large_sizes
)
grants = calls("grantRole(bytes32,address)", roles, names)
removals = calls("revokeRole(bytes32,address)", roles, members) | calls(
    "renounceRole(bytes32,address)", roles, members
)
upgrades = proxies.flatmap(upgrades_of)

implementation = st.just("group messages 1")
trespasses = st.one_of(
    st.builds(Call, st.sampled_from(ACCOUNTS), st.just("sequence"), st.just("next()")),
    calls("initialize(address,uint32,uint32)", names, sizes, sizes),
    calls("initialize(address,uint32,uint32)", names, sizes, sizes, targets=implementation),
    calls("pause()", targets=implementation),
    calls("upgradeToAndCall(address,bytes)", names, st.just(b""), targets=implementation),
    publications_to(implementation),
)
actions = st.one_of(publications, pauses, bounds, grants, removals, upgrades, trespasses)


def blocks(of: st.SearchStrategy[Any], largest: int) -> st.SearchStrategy[list[Action]]:
    return st.lists(of, min_size=1, max_size=largest)


class PayloadMachine(ChainMachine):
    @initialize(number=st.integers(2, ACTORS))
    def appoint_a_second_admin(self, number: int) -> None:
        arguments = (ADMIN_ROLE, Name(f"account {number}"))
        grant = "grantRole(bytes32,address)"
        self.mine(*(Call("account 1", proxy, grant, arguments) for proxy in PROXIES))

    @rule(block=blocks(publications, 5))
    def publish(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(st.one_of(pauses, pauses, bounds), 3))
    def pause_or_bound(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(grants | removals, 3))
    def change_roles(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(upgrades, 3))
    def upgrade(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(trespasses, 3))
    def trespass(self, block: list[Action]) -> None:
        self.mine(*block)

    @rule(block=blocks(publications | actions, 8))
    def mine_anything(self, block: list[Action]) -> None:
        self.mine(*block)

    def check_logs(self, logs: list[dict[str, Any]]) -> None:
        """The ids of both contracts are 1, 2, 3, … in the chain's order."""
        found = [parse_log(log) for log in logs]
        topics = (MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC)
        payloads = [decode_payload_event(log) for log in found if log.topics[0] in topics]
        assert [payload.sequence_id for payload in payloads] == [*range(1, self.model.last + 1)]


@pytest.fixture(scope="module")
def chain() -> Iterator[MinedChain]:
    with mined_chain() as chain:
        yield chain


@pytest.fixture(scope="module")
def model(project: Any, test_contracts: Mapping[str, Any], chain: MinedChain) -> PayloadModel:
    """Deploys both; Ape gives the bytecode only, the chain is another one than its own."""
    deploy = partial(deploy_compiled, chain)
    proxies = dict(zip(PROXIES, map(chain.next_address, (8, 9)), strict=True))
    sequence, elsewhere = (
        deploy(project.OriginatorSequence, "(address,address)", *proxies.values()) for _ in range(2)
    )
    names = {name: chain.accounts[number] for number, name in enumerate(ACCOUNTS, 1)}
    names |= {"zero": ZERO, "sequence": sequence, **proxies}
    contracts = []
    for name, contract, interface, its_sequence in (
        ("group messages 1", project.GroupMessages, GROUP_MESSAGES, sequence),
        ("group messages 2", test_contracts["GroupMessagesSuccessor"], GROUP_MESSAGES, sequence),
        ("identity updates 1", project.IdentityUpdates, IDENTITY_UPDATES, sequence),
        ("identity updates 2", project.IdentityUpdates, IDENTITY_UPDATES, sequence),
        ("group messages elsewhere", project.GroupMessages, GROUP_MESSAGES, elsewhere),
        ("identity updates elsewhere", project.IdentityUpdates, IDENTITY_UPDATES, elsewhere),
    ):
        names[name] = deploy(contract, "(address)", its_sequence)
        contracts.append(PayloadContract(names[name], interface, its_sequence))
    for proxy, interface in zip(PROXIES, (GROUP_MESSAGES, IDENTITY_UPDATES), strict=True):
        first = names[f"{proxy} 1"]
        admin = names["account 1"]
        call = encode_call("initialize(address,uint32,uint32)", admin, *FIRST_BOUNDS)
        assert deploy(project.SequencedLogProxy, "(address,bytes)", first, call) == proxies[proxy]
        contracts.append(PayloadContract(proxies[proxy], interface, sequence, first, *FIRST_BOUNDS))
        contracts[-1].members[ADMIN_ROLE].append(admin)
    return PayloadModel(sequence, contracts, names)


def test_calls_and_reorgs__in_any_order__leave_both_contracts_as_the_model(
    chain: MinedChain, model: PayloadModel
) -> None:
    run_machine(lambda: PayloadMachine(chain, deepcopy(model)), examples=EXAMPLES, steps=STEPS)
