"""`chainkit registry` against the real contract on a real anvil."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import eth_abi
import pytest

from chainkit.contracts.checks import HTTP_ADDRESS_MAXIMUM
from chainkit.contracts.registry import Registry
from chainkit.errors import RefusedRequest
from chainkit.signatures import address_of, keccak256
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address, dev_secret
from support.command_line import run, write_keystore
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    URL,
    add_arguments,
    registry_command,
    sent_by,
    standing,
)


@pytest.fixture
def owner_options(tmp_path: Path) -> list[str]:
    return sent_by(tmp_path, REGISTRY_OWNER)


def test_round_trip__add_list_show_disable_enable__each_is_read_back(
    local_chain: LocalChain, owner_options: list[str]
) -> None:
    added = registry_command(local_chain, *add_arguments(KEYS[0]), *owner_options)
    assert added.code == 0, added.err
    assert "read back as planned" in added.out
    assert "node id         100\n" in added.out

    shown = registry_command(local_chain, "show", 100, "--json").content
    assert shown["signing_key"] == "0x" + KEYS[0].hex()
    assert (shown["status"], shown["holder"], shown["http_address"]) == ("enabled", OPERATOR, URL)

    disabled = registry_command(local_chain, "disable", 100, "--json", *owner_options).content
    assert disabled["sent"] is True
    assert disabled["difference"] == ["node 100 status: enabled -> disabled"]
    listed = registry_command(local_chain, "list", "--json").content
    assert [(node["node_id"], node["status"]) for node in listed["nodes"]] == [(100, "disabled")]
    assert listed["owner"] == dev_address(REGISTRY_OWNER)

    before = disabled["block"]["number"]
    earlier = registry_command(local_chain, "list", "--json", "--block", before).content
    assert [node["status"] for node in earlier["nodes"]] == ["enabled"]

    enabled = registry_command(local_chain, "enable", 100, *owner_options)
    assert enabled.code == 0, enabled.err
    assert "100  enabled" in registry_command(local_chain, "list").out


def test_dry_run__every_change__shows_it_and_changes_nothing(local_chain: LocalChain) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    before = standing(local_chain)

    added = registry_command(local_chain, *add_arguments(KEYS[1]))
    disabled = registry_command(local_chain, "disable", 100)
    as_json = registry_command(local_chain, "disable", 100, "--json")

    assert standing(local_chain) == before
    assert (added.code, disabled.code) == (0, 0)
    for outcome in (added, disabled):
        assert outcome.out.endswith("nothing was sent; add --broadcast --keystore FILE to send\n")
        assert max(map(len, outcome.out.splitlines())) <= 100
    assert f"node of key {address_of(KEYS[1])} status: (none) -> enabled" in added.out
    assert "node 100 status: enabled -> disabled" in disabled.out
    content = as_json.content
    (call,) = content["calls"]
    calldata = bytes.fromhex(call["calldata"][2:])
    assert content["sent"] is False
    assert content["chain_id"] == local_chain.record.chain_id
    assert call["calldata_keccak256"] == "0x" + keccak256(calldata).hex()
    assert call["calldata_keccak256"] in disabled.out
    assert eth_abi.decode(["uint256", "bool"], calldata[4:]) == (100, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enable", 100], "one that changes something, got node 100 status: enabled already"),
        (["close-updates"], "address updates: closed already"),
        (["transfer", 100, "--holder", OPERATOR], f"node 100 holder: {OPERATOR} already"),
        (["transfer", 200, "--holder", OPERATOR], "expected a registered node"),
        (["transfer", 100, "--holder", "0x" + 40 * "0"], "--holder: expected an account"),
        (["history", 200], "expected a registered node"),
        (["history", "--from-block", 10**9], "--from-block: expected a height from"),
        (["disable", 200], "expected a registered node"),
        (["show", 200], "expected a registered node"),
        (add_arguments(KEYS[0]), "the key of node 100"),
        (add_arguments(KEYS[1][:-1]), "expected 65 bytes, got 64 bytes"),
        (add_arguments(KEYS[1][:-1] + b"\0"), "a point of secp256k1"),
        (add_arguments(KEYS[1], "https://a.example/\x1b[2J"), "printable ASCII"),
        (add_arguments(KEYS[1], "ftp://a.example"), "http:// or https://"),
        (["list", "--block", 0], "a height from"),
        (["list", "--block", 10**9], "(the head)"),
        (["disable", 100, "--broadcast"], "--broadcast needs --keystore"),
        (["hand-over"], "give either --to ADDRESS or --withdraw"),
        (["hand-over", "--to", OPERATOR, "--withdraw"], "give either"),
        (["hand-over", "--to", dev_address(REGISTRY_OWNER)], "another account, got the owner"),
        (["hand-over", "--withdraw"], "pending owner: (none) already"),
        (["accept"], "an account that ownership is offered to"),
    ],
)
def test_command__changes_nothing_or_cannot_be__is_refused(
    local_chain: LocalChain, arguments: list[object], words: str
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    before = standing(local_chain)

    outcome = registry_command(local_chain, *arguments)

    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.replace("\n", "").isprintable()
    assert standing(local_chain) == before


def test_broadcast__key_is_not_the_owners__is_refused_before_sending(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    before = standing(local_chain)
    stranger = write_keystore(tmp_path, dev_secret(3))

    outcome = registry_command(local_chain, "disable", 100, "--broadcast", *stranger)

    assert outcome.code == 2
    owner = dev_address(REGISTRY_OWNER)
    assert f"keystore: expected the registry's owner {owner}, got {dev_address(3)}" in outcome.err
    assert standing(local_chain) == before


@pytest.mark.parametrize(
    "arguments",
    [["disable", 100], ["transfer", 100, "--holder", dev_address(6)], ["open-updates"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_broadcast__owner_is_a_contract__is_refused_before_a_key_is_read(
    local_chain: LocalChain, tmp_path: Path, arguments: list[object]
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    local_chain.anvil.request("anvil_setCode", dev_address(REGISTRY_OWNER), "0xfe")
    before = standing(local_chain)

    dry = registry_command(local_chain, *arguments)
    sent = registry_command(
        local_chain, *arguments, "--broadcast", "--keystore", tmp_path / "none.json"
    )

    assert dry.code == 0, dry.err
    assert "(the registry's owner, a contract)" in dry.out
    assert dry.out.endswith("add --propose FILE to draft it\n")
    assert sent.code == 2
    assert "a contract: use --propose FILE" in sent.err
    assert standing(local_chain) == before


def test_broadcast__owner_delegates_by_eip_7702__is_an_account_and_sends(
    local_chain: LocalChain, owner_options: list[str]
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    delegation = "0xef0100" + local_chain.record.group_messages.address.hex()
    local_chain.anvil.request("anvil_setCode", dev_address(REGISTRY_OWNER), delegation)

    outcome = registry_command(local_chain, "disable", 100, *owner_options)

    assert outcome.code == 0, outcome.err


def test_broadcast__not_mined_in_time__fails_and_a_second_one_is_refused(
    local_chain: LocalChain, owner_options: list[str]
) -> None:
    local_chain.add_node(OPERATOR, KEYS[0], URL)
    local_chain.pause_mining()

    waiting = registry_command(local_chain, "disable", 100, *owner_options, "--timeout", 0.3)
    second = registry_command(local_chain, "disable", 100, *owner_options)

    assert (waiting.code, second.code) == (2, 2)
    assert "a receipt within 0.3 s, got none; it may still be mined" in waiting.err
    assert "expected none waiting to be mined, got 1" in second.err


def test_command__record_of_another_chain__is_refused(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    record = json.loads(local_chain.record_path.read_text())
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(record | {"chain_id": 1}))

    outcome = run("registry", "list", "--rpc", local_chain.url, "--deployment", foreign)

    assert outcome.code == 2
    assert "chain id" in outcome.err
    assert "expected 1, got 31337" in outcome.err


def test_command__dead_rpc__is_one_sentence(local_chain: LocalChain) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        outcome = run("registry", "list", "--rpc", url, "--deployment", local_chain.record_path)

    assert outcome.code == 2
    assert outcome.err == f"error: {url}: expected an answer, got connection refused\n"


def test_call__reverts__is_told_in_the_contracts_words(local_chain: LocalChain) -> None:
    registry = Registry(local_chain.endpoint, local_chain.record.node_registry.address)
    calldata = registry.interface.encode("addNode", OPERATOR, KEYS[0], URL)
    stranger = dev_address(3)

    with pytest.raises(RefusedRequest) as caught:
        registry.endpoint.call(registry.address, calldata, local_chain.head().reference, stranger)

    words = registry.interface.revert_words(caught.value)
    assert words == f"OwnableUnauthorizedAccount(account={stranger})"


def test_add__as_json__tells_the_id_that_the_registry_gave(
    local_chain: LocalChain, owner_options: list[str]
) -> None:
    local_chain.add_node(OPERATOR, KEYS[1], URL)

    dry = registry_command(local_chain, *add_arguments(KEYS[0]), "--json").content
    added = registry_command(local_chain, *add_arguments(KEYS[0]), "--json", *owner_options).content

    assert "node_id" not in dry
    assert (added["sent"], added["node_id"]) == (True, 200)


def test_list__addresses_with_escapes_and_no_utf_8__are_shown_harmless(
    local_chain: LocalChain, owner_options: list[str]
) -> None:
    types = ["address", "bytes", "bytes"]
    selector = keccak256(b"addNode(address,bytes,string)")[:4]
    for key, url in zip(KEYS, (b"http://a\x1b[2J\r\n", b"http://\xff\xfe"), strict=False):
        data = selector + eth_abi.encode(types, [OPERATOR, key, url])
        local_chain.send(local_chain.record.node_registry.address, data, REGISTRY_OWNER)

    listed = registry_command(local_chain, "list")
    shown = registry_command(local_chain, "show", 100)
    disabled = registry_command(local_chain, "disable", 200, *owner_options)

    assert "http://a\\x1b[2J\\x0d\\x0a" in listed.out
    assert "http://\\udcff\\udcfe" in listed.out
    for outcome in (listed, shown, disabled):
        assert outcome.code == 0, outcome.err
        assert outcome.out.replace("\n", "").isprintable()


def test_add__url_of_the_greatest_length__is_accepted_as_by_the_contract(
    local_chain: LocalChain,
) -> None:
    registry = Registry(local_chain.endpoint, local_chain.record.node_registry.address)
    (maximum,) = registry.interface.call(
        registry.endpoint, registry.address, local_chain.head().reference, "maxHttpAddressLength"
    )
    longest = "https://a.example/" + (maximum - 18) * "a"

    local_chain.add_node(OPERATOR, KEYS[1], longest)
    listed = registry_command(local_chain, "list").out

    assert maximum == HTTP_ADDRESS_MAXIMUM
    assert max(map(len, listed.splitlines())) <= 100
    assert longest in "".join(listed.split())
    assert registry_command(local_chain, *add_arguments(KEYS[0], longest)).code == 0
    assert registry_command(local_chain, *add_arguments(KEYS[0], longest + "a")).code == 2
