"""Each call of the registry has a known change and senders; calls that would harm are refused."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from chainkit.council.calls import FUNCTIONS, Call, Change, read_change, unmet
from chainkit.council.calls.registry_effects import REGISTRY_EFFECTS
from chainkit.errors import ConfigurationError, RefusedRequest
from chainkit.signatures import address_of
from chainkit.types import Node
from support.council.fake_registry import (
    HOLDER,
    NOBODY,
    OTHER_CONTRACTS,
    OWNER_ADDRESS,
    RECORD,
    FakeRegistry,
    node_key,
)
from support.endpoints.fake_endpoint import RpcError

NEW_KEY = node_key(9).public_key
NEW_ADDRESS = address_of(NEW_KEY)
URL = "https://node.example"
SUCCESSOR = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
STRANGER = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
ONE_OF_OURS = "0x" + OTHER_CONTRACTS["GroupMessages"].hex()


def call(function: str, *arguments: object) -> Call:
    return Call.make(RECORD, "NodeRegistry", function, *arguments)


def change(fake: FakeRegistry, *calls: Call, sender: str = OWNER_ADDRESS) -> Change:
    return read_change(REGISTRY_EFFECTS, fake.state(), RECORD, sender, calls)


def test_effects__functions_that_a_council_calls__have_one_each() -> None:
    assert set(REGISTRY_EFFECTS) == set(FUNCTIONS["NodeRegistry"])


def test_add__new_key__is_known_by_the_keys_address() -> None:
    found = change(FakeRegistry(), call("addNode", HOLDER, NEW_KEY, URL))

    assert found.difference == (
        f"node of key {NEW_ADDRESS} status: (none) -> enabled",
        f"node of key {NEW_ADDRESS} holder: (none) -> {HOLDER}",
        f"node of key {NEW_ADDRESS} http address: (none) -> {URL}",
    )


def test_add__two_nodes__are_one_change() -> None:
    second = node_key(8).public_key

    found = change(
        FakeRegistry(), call("addNode", HOLDER, NEW_KEY, URL), call("addNode", HOLDER, second, URL)
    )

    assert len(found.difference) == 6


def test_add__same_key_twice__is_refused() -> None:
    twice = [call("addNode", HOLDER, NEW_KEY, url) for url in (URL, "https://other.example")]

    with pytest.raises(ConfigurationError, match="a fact that no other call sets"):
        change(FakeRegistry(), *twice)


@pytest.mark.parametrize(("number", "status"), [(1, "enabled"), (2, "disabled")])
def test_add__key_of_a_node__is_refused(number: int, status: str) -> None:
    used = call("addNode", HOLDER, node_key(number).public_key, URL)

    with pytest.raises(ConfigurationError, match=f"never registered, got .* node that is {status}"):
        change(FakeRegistry(), used)


@pytest.mark.parametrize(
    ("holder", "key", "url", "words"),
    [
        (NOBODY, NEW_KEY, URL, "the zero address"),
        (ONE_OF_OURS, NEW_KEY, URL, "GroupMessages itself"),
        (HOLDER, NEW_KEY[:-1] + b"\0", URL, "a point of secp256k1"),
        (HOLDER, NEW_KEY[:-1], URL, "expected 65 bytes"),
        (HOLDER, NEW_KEY, "", "an empty one"),
        (HOLDER, NEW_KEY, "https://a@evil.example", "a user before it"),
        (HOLDER, NEW_KEY, "https://\u043ede.example", "printable ASCII"),
        (HOLDER, NEW_KEY, "https://a.example/\x1b[2J", "printable ASCII"),
    ],
)
def test_add__arguments_that_must_never_be_sent__are_refused_in_printable_words(
    holder: str, key: bytes, url: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        change(FakeRegistry(), call("addNode", holder, key, url))
    assert str(caught.value).isprintable()
    assert "\u043e" not in str(caught.value)


def test_add__mined_with_another_url__is_unmet() -> None:
    fake = FakeRegistry()
    planned = change(fake, call("addNode", HOLDER, NEW_KEY, URL))
    assert len(unmet(REGISTRY_EFFECTS, fake.state(), planned)) == 3

    fake.nodes.append(Node(400, NEW_KEY, "https://other.example", True))
    (fault,) = unmet(REGISTRY_EFFECTS, fake.state(), planned)
    assert fault.endswith(f"http address: expected {URL}, got https://other.example")

    fake.nodes[-1] = replace(fake.nodes[-1], http_address=URL)
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


@pytest.mark.parametrize(
    ("node_id", "is_enabled", "line"),
    [
        (100, False, "node 100 status: enabled -> disabled"),
        (200, True, "node 200 status: disabled -> enabled"),
    ],
)
def test_set_status__other_status__is_the_whole_difference(
    node_id: int, is_enabled: bool, line: str
) -> None:
    fake = FakeRegistry()
    planned = change(fake, call("updateHealth", node_id, is_enabled))

    assert planned.difference == (line,)
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) != ()
    fake.set_status(node_id, is_enabled)
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("updateHealth", (100, True)),
        ("updateHealth", (200, False)),
        ("transferFrom", (HOLDER, HOLDER, 100)),
        ("setHttpAddressUpdatesOpen", (False,)),
        ("transferOwnership", (NOBODY,)),
    ],
)
def test_call__of_what_is_so_already__is_refused(
    function: str, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ConfigurationError, match=r"one that changes something, got .* already"):
        change(FakeRegistry(), call(function, *arguments))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("updateHealth", (150, True)),
        ("transferFrom", (HOLDER, SUCCESSOR, 150)),
        ("updateHttpAddress", (150, URL)),
    ],
)
def test_call__of_an_unknown_node__is_refused(function: str, arguments: tuple[object, ...]) -> None:
    words = "node 150: expected a registered node, got none at block"
    with pytest.raises(ConfigurationError, match=words):
        change(FakeRegistry(), call(function, *arguments))


def test_set_status__endpoint_refuses_for_another_reason__is_not_an_unknown_node() -> None:
    fake = FakeRegistry(overrides={"getNode": RpcError(-32000, "missing trie node")})

    with pytest.raises(RefusedRequest, match="missing trie node"):
        change(fake, call("updateHealth", 100, False))


def test_transfer__from_its_holder__changes_the_holder() -> None:
    fake = FakeRegistry()
    planned = change(fake, call("transferFrom", HOLDER, SUCCESSOR, 100))

    assert planned.difference == (f"node 100 holder: {HOLDER} -> {SUCCESSOR}",)
    fake.holders[100] = SUCCESSOR
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (STRANGER, SUCCESSOR, f"expected {HOLDER}, as `from`, got {STRANGER}"),
        (HOLDER, NOBODY, "the zero address"),
        (HOLDER, ONE_OF_OURS, "GroupMessages itself"),
    ],
)
def test_transfer__from_another_or_to_nobody__is_refused(
    source: str, target: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        change(FakeRegistry(), call("transferFrom", source, target, 100))


@pytest.mark.parametrize(
    ("is_open", "words"), [(True, "closed -> open"), (False, "open -> closed")]
)
def test_open_updates__other_way__is_the_difference(is_open: bool, words: str) -> None:
    fake = FakeRegistry(is_open=not is_open)
    planned = change(fake, call("setHttpAddressUpdatesOpen", is_open))

    assert planned.difference == (f"NodeRegistry operators' address updates: {words}",)
    fake.is_open = is_open
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


def test_set_url__of_a_node__is_the_difference() -> None:
    fake = FakeRegistry(is_open=True)
    planned = change(fake, call("updateHttpAddress", 200, URL), sender=HOLDER)

    assert planned.difference == (f"node 200 http address: https://2.example -> {URL}",)
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) != ()
    fake.nodes[1] = replace(fake.nodes[1], http_address=URL)
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


def test_set_url__of_a_hostile_url__shows_it_without_blanks() -> None:
    fake = FakeRegistry(is_open=True)
    fake.nodes[1] = replace(fake.nodes[1], http_address="https://a  \x1b[2J")

    planned = change(fake, call("updateHttpAddress", 200, URL), sender=HOLDER)

    line = f"node 200 http address: https://a\\x20\\x20\\x1b[2J -> {URL}"
    assert planned.difference == (line,)


@pytest.mark.parametrize(
    ("url", "is_open", "words"),
    [
        (URL, False, "address updates: expected open, by the registry's owner .*, got closed"),
        ("https://2.example", True, "one that changes something, got .* already"),
        ("https://a@evil.example", True, "a user before it"),
        ("", True, "an empty one"),
    ],
)
def test_set_url__closed_or_the_same_or_no_url__is_refused(
    url: str, is_open: bool, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        change(FakeRegistry(is_open=is_open), call("updateHttpAddress", 200, url), sender=HOLDER)


def test_offer__to_another__changes_the_pending_owner_alone() -> None:
    fake = FakeRegistry()
    planned = change(fake, call("transferOwnership", SUCCESSOR))

    assert planned.difference == (f"NodeRegistry pending owner: (none) -> {SUCCESSOR}",)
    fake.pending_owner = SUCCESSOR
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()
    fake.owner = STRANGER
    assert "NodeRegistry owner: expected" in unmet(REGISTRY_EFFECTS, fake.state(), planned)[0]


def test_offer__withdrawn__leaves_no_pending_owner() -> None:
    fake = FakeRegistry(pending_owner=SUCCESSOR)

    planned = change(fake, call("transferOwnership", NOBODY))

    assert planned.difference == (f"NodeRegistry pending owner: {SUCCESSOR} -> (none)",)


@pytest.mark.parametrize(
    ("new_owner", "words"),
    [(OWNER_ADDRESS, "another account, got the owner"), (ONE_OF_OURS, "GroupMessages itself")],
)
def test_offer__to_the_owner_or_one_of_our_contracts__is_refused(
    new_owner: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        change(FakeRegistry(), call("transferOwnership", new_owner))


def test_accept__by_the_pending_owner__makes_it_the_owner() -> None:
    fake = FakeRegistry(pending_owner=SUCCESSOR)
    planned = change(fake, call("acceptOwnership"), sender=SUCCESSOR)

    assert planned.difference == (
        f"NodeRegistry owner: {OWNER_ADDRESS} -> {SUCCESSOR}",
        f"NodeRegistry pending owner: {SUCCESSOR} -> (none)",
    )
    fake.owner, fake.pending_owner = SUCCESSOR, NOBODY
    assert unmet(REGISTRY_EFFECTS, fake.state(), planned) == ()


def test_accept__nothing_offered__is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"pending owner: expected an account .* got \(none\)"
    ):
        change(FakeRegistry(), call("acceptOwnership"))


ARGUMENTS: dict[str, Callable[[], tuple[object, ...]]] = {
    "addNode": lambda: (HOLDER, NEW_KEY, URL),
    "updateHealth": lambda: (100, False),
    "transferFrom": lambda: (HOLDER, SUCCESSOR, 100),
    "setHttpAddressUpdatesOpen": lambda: (True,),
    "updateHttpAddress": lambda: (100, URL),
    "transferOwnership": lambda: (STRANGER,),
    "acceptOwnership": lambda: (),
}


@pytest.mark.parametrize("function", ARGUMENTS)
@pytest.mark.parametrize("sender", [HOLDER, STRANGER, SUCCESSOR, OWNER_ADDRESS])
def test_call__by_anyone_but_who_may__is_refused(function: str, sender: str) -> None:
    fake = FakeRegistry(pending_owner=SUCCESSOR, is_open=function == "updateHttpAddress")
    made = call(function, *ARGUMENTS[function]())
    allowed, role = {
        "acceptOwnership": (SUCCESSOR, "the account that NodeRegistry is offered to"),
        "updateHttpAddress": (HOLDER, "the holder of node 100"),
    }.get(function, (OWNER_ADDRESS, "the owner of NodeRegistry"))

    if sender == allowed:
        assert change(fake, made, sender=sender).difference
        return
    words = f"sender of {function}: expected {role} ({allowed}), got {sender}, which has no such"
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        change(fake, made, sender=sender)
