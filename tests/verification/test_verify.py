"""`chainkit contracts verify` against what `scripts/deploy.py` put on a real anvil."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from chainkit.chain.sending import Sending
from chainkit.contracts.artifacts import runtime_code
from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP, SEQUENCED_LOGS, read_parameters
from chainkit.contracts.state import (
    IMPLEMENTATION_SLOT,
    INITIALIZABLE_SLOT,
    ContractState,
    erc1967_slot,
)
from chainkit.contracts.verification import (
    compare_accounts,
    compare_deployment,
    implementation_of,
)
from chainkit.council.upgrade.upgrade import deploy_implementation
from chainkit.types import BlockReference
from support.chains.chain import LocalChain, dev_address
from support.chains.tampering import (
    ADMINISTRATOR,
    call_as,
    change_last_byte,
    set_hidden_role,
    set_role_admin,
    write_code,
    write_slot,
)
from support.command_line import Outcome, run
from support.council.offline import in_one_line
from support.council.signers import dev_signer
from support.differences import differences
from support.project import ROOT

PARAMETERS = ROOT / "deployments" / "parameters" / "local.json"

Tampering = Callable[[LocalChain], object]


def verify(chain: LocalChain, *arguments: object) -> Outcome:
    deployment = ("--deployment", chain.record_path)
    return run("contracts", "verify", "--rpc", chain.url, *deployment, *arguments)


def as_administrator(name: str, function: str, *arguments: object) -> Tampering:
    def tamper(chain: LocalChain) -> None:
        address = next(item.address for item in chain.record.contracts if item.name == name)
        call_as(chain, ADMINISTRATOR, name, address, function, *arguments)

    return tamper


def move_registry(chain: LocalChain) -> None:
    registry = chain.record.node_registry.address
    call_as(chain, ADMINISTRATOR, "NodeRegistry", registry, "transferOwnership", dev_address(4))
    call_as(chain, 4, "NodeRegistry", registry, "acceptOwnership")


def swap_implementations(chain: LocalChain) -> None:
    other = int.from_bytes(implementation_of(chain.record.identity_updates), "big")
    write_slot(chain, chain.record.group_messages.address, IMPLEMENTATION_SLOT, other)


def swap_callers(chain: LocalChain) -> None:
    messages, updates = chain.record.payload_addresses
    code = runtime_code(
        "OriginatorSequence", {"groupMessages": updates, "identityUpdates": messages}
    )
    write_code(chain, chain.record.originator_sequence.address, code)


TAMPERINGS: dict[str, tuple[Tampering, str]] = {
    "another implementation": (swap_implementations, "implementation slot of GroupMessages 0x"),
    "code of a proxy": (
        lambda chain: change_last_byte(chain, chain.record.identity_updates.address),
        "code of IdentityUpdates' proxy 0x",
    ),
    "code of an implementation": (
        lambda chain: change_last_byte(chain, implementation_of(chain.record.group_messages)),
        "code of GroupMessages' implementation 0x",
    ),
    "code of the registry": (
        lambda chain: change_last_byte(chain, chain.record.node_registry.address),
        "code of NodeRegistry 0x",
    ),
    "no code": (
        lambda chain: write_code(chain, chain.record.node_registry.address, b""),
        "code of NodeRegistry 0x",
    ),
    "another sequence": (
        lambda chain: write_code(
            chain,
            implementation_of(chain.record.group_messages),
            runtime_code(
                "GroupMessages",
                {
                    "__self": implementation_of(chain.record.group_messages),
                    "originatorSequence": b"\x05" * 20,
                },
            ),
        ),
        "code of GroupMessages' implementation 0x",
    ),
    "other callers": (swap_callers, "code of OriginatorSequence 0x"),
    "admin slot": (
        lambda chain: write_slot(
            chain, chain.record.payload_addresses[0], erc1967_slot("admin"), 1
        ),
        "admin slot of GroupMessages 0x",
    ),
    "beacon slot": (
        lambda chain: write_slot(
            chain, chain.record.payload_addresses[1], erc1967_slot("beacon"), 1
        ),
        "beacon slot of IdentityUpdates 0x",
    ),
    "proxy not initialized": (
        lambda chain: write_slot(chain, chain.record.payload_addresses[0], INITIALIZABLE_SLOT, 0),
        "initialization of GroupMessages 0x",
    ),
    "proxy initialized again": (
        lambda chain: write_slot(chain, chain.record.payload_addresses[1], INITIALIZABLE_SLOT, 2),
        "initialization of IdentityUpdates 0x",
    ),
    "implementation not locked": (
        lambda chain: write_slot(
            chain, implementation_of(chain.record.identity_updates), INITIALIZABLE_SLOT, 0
        ),
        "initialization of IdentityUpdates' implementation 0x",
    ),
    "one administrator more": (
        as_administrator("IdentityUpdates", "grantRole", bytes(32), dev_address(4)),
        "administrators of IdentityUpdates",
    ),
    "an administrator whom no listing shows": (
        lambda chain: set_hidden_role(chain, chain.record.payload_addresses[0], 0, True),
        f"what deployer {dev_address(0)} holds in GroupMessages",
    ),
    "another role names administrators": (
        lambda chain: set_role_admin(chain, chain.record.payload_addresses[1], 7),
        "role that names administrators of IdentityUpdates",
    ),
    "bounds": (
        as_administrator("GroupMessages", "setPayloadBounds", 1, 2000),
        "payload bounds of GroupMessages",
    ),
    "another owner": (move_registry, "owner of NodeRegistry"),
    "an owner who is to come": (
        as_administrator("NodeRegistry", "transferOwnership", dev_address(4)),
        "pending owner of NodeRegistry",
    ),
}


def test_verify__as_deployed__holds_by_record_and_by_parameters(local_chain: LocalChain) -> None:
    by_record = verify(local_chain)
    by_parameters = verify(local_chain, "--parameters", PARAMETERS, "--json")

    assert (by_record.code, by_record.err) == (0, "")
    assert "as this package would have deployed it" in by_record.out
    assert "differs" not in by_record.out
    assert max(map(len, by_record.out.splitlines())) <= 100
    content = by_parameters.content
    assert content["verified"] is True
    assert content["block"]["number"] == local_chain.head().number
    told = {item["subject"] for item in content["comparisons"] if item["expected"] is None}
    assert told == {
        "pause of GroupMessages",
        "pause of IdentityUpdates",
        "last sequence id of OriginatorSequence",
        "operators' address updates in NodeRegistry",
        "first administrator of GroupMessages",
        "first administrator of IdentityUpdates",
        "first owner of NodeRegistry",
    }


@pytest.mark.parametrize("name", SEQUENCED_LOGS)
def test_payload_size_cap__of_the_contracts__is_what_parameters_are_held_to(
    local_chain: LocalChain, name: str
) -> None:
    proxy = next(log for log in local_chain.record.sequenced_logs if log.name == name)
    state = ContractState(local_chain.endpoint, local_chain.head().reference)
    assert state.ask(name, proxy.address, "payloadSizeCap") == PAYLOAD_SIZE_CAP


@pytest.mark.parametrize("what", TAMPERINGS)
def test_verify__one_thing_is_another__exits_1_and_names_it(
    what: str, local_chain: LocalChain
) -> None:
    tamper, subject = TAMPERINGS[what]
    tamper(local_chain)

    told = verify(local_chain)
    content = verify(local_chain, "--json").content

    assert told.code == 1, told
    first, *others = (item for item in content["comparisons"] if item["result"] == "differs")
    assert first["subject"].startswith(subject)
    assert first["expected"] != first["got"]
    # The first one first, below all that is equal; and none of the others is left out.
    _, *shown = told.out.split("\ndiffers ")
    assert len(shown) == 1 + len(others)
    assert in_one_line(shown[0]).startswith(subject)
    assert all("as expected" not in each and "  expected " in each for each in shown)


def test_verify__code_differs_in_immutables_alone__says_which(local_chain: LocalChain) -> None:
    swap_callers(local_chain)

    last = differences(verify(local_chain, "--json"))[0]

    messages, updates = local_chain.record.payload_addresses
    assert f"the same code with groupMessages 0x{updates.hex()}" in last["got"]
    assert f"identityUpdates 0x{messages.hex()}" in last["got"]


def test_verify__all__tells_every_difference_and_asks_no_foreign_code(
    local_chain: LocalChain,
) -> None:
    swap_implementations(local_chain)
    change_last_byte(local_chain, local_chain.record.node_registry.address)

    outcome = verify(local_chain, "--json")

    assert outcome.code == 1
    comparisons = outcome.content["comparisons"]
    differences = [item["subject"] for item in comparisons if item["result"] == "differs"]
    assert [subject.partition(" 0x")[0] for subject in differences] == [
        "implementation slot of GroupMessages",
        "code of NodeRegistry",
    ]
    untold = [item["subject"] for item in comparisons if "not asked" in item["got"]]
    assert [subject.partition(" 0x")[0] for subject in untold] == [
        "answers of GroupMessages",
        "answers of NodeRegistry",
    ]
    assert "administrators of IdentityUpdates" in {item["subject"] for item in comparisons}


def test_verify__role_that_the_contract_does_not_know__is_named_until_it_is_revoked(
    local_chain: LocalChain,
) -> None:
    role, holder = b"\x07" * 32, dev_address(6)
    as_administrator("GroupMessages", "grantRole", role, holder)(local_chain)

    granted = verify(local_chain, "--json")
    as_administrator("GroupMessages", "revokeRole", role, holder)(local_chain)

    assert granted.code == 1
    assert differences(granted)[0]["subject"] == "roles of GroupMessages that it does not know"
    assert differences(granted)[0]["got"] == f"{holder} holds the role 0x{role.hex()}"
    assert verify(local_chain).code == 0


def test_verify__record_without_parameters__tells_who_holds_what(local_chain: LocalChain) -> None:
    content = json.loads(local_chain.record_path.read_text())
    content.pop("parameters", None)
    local_chain.record_path.write_text(json.dumps(content))
    as_administrator("GroupMessages", "setPayloadBounds", 1, 2000)(local_chain)

    without = verify(local_chain, "--json")
    with_file = verify(local_chain, "--json", "--parameters", PARAMETERS)

    assert (without.code, with_file.code) == (0, 1)
    told = {item["subject"]: item for item in without.content["comparisons"]}
    assert told["payload bounds of GroupMessages"]["result"] == "not compared"
    assert told["payload bounds of GroupMessages"]["got"] == "1 to 2000 bytes"
    assert told["owner of NodeRegistry"]["result"] == "not compared"


def test_verify__paused__is_told_and_no_difference(local_chain: LocalChain) -> None:
    as_administrator("GroupMessages", "pause")(local_chain)

    outcome = verify(local_chain)

    assert outcome.code == 0
    assert "not compared    pause of GroupMessages: paused" in outcome.out


@pytest.mark.parametrize(
    ("changes", "subject"),
    [({"chain_id": 1}, "chain id"), ({"genesis_hash": "0x" + "11" * 32}, "hash of block 0")],
)
def test_verify__record_of_another_chain__is_a_difference(
    changes: dict[str, object], subject: str, local_chain: LocalChain
) -> None:
    content = json.loads(local_chain.record_path.read_text())
    local_chain.record_path.write_text(json.dumps(content | changes))

    outcome = verify(local_chain, "--json")

    assert outcome.code == 1
    assert differences(outcome)[0]["subject"] == subject


def test_verify__account_should_be_a_contract__names_it(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    content = json.loads(PARAMETERS.read_text())
    content["registry_owner"]["kind"] = "contract"
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps(content))

    outcome = verify(local_chain, "--json", "--parameters", path)

    assert outcome.code == 1
    last = differences(outcome)[0]
    assert last["subject"] == f"kind of registry owner {dev_address(ADMINISTRATOR)}"
    assert (last["expected"], last["got"]) == ("contract", "account")


def test_verify__parameters_of_another_chain__cannot_be_compared(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps(json.loads(PARAMETERS.read_text()) | {"chain_id": 5}))

    outcome = verify(local_chain, "--parameters", path)

    assert outcome.code == 2
    assert "expected the record's 31337, got 5" in outcome.err


def test_verify__dead_endpoint__could_not_be_compared(local_chain: LocalChain) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        path = local_chain.record_path
        outcome = run("contracts", "verify", "--rpc", url, "--deployment", path)

    assert outcome.code == 2
    assert "connection refused" in outcome.err


def test_compare__at_an_earlier_block__sees_nothing_of_later_ones(local_chain: LocalChain) -> None:
    def differences(block: BlockReference) -> list[str]:
        found = compare_deployment(local_chain.endpoint, local_chain.record, None, block)
        return [item.subject.partition(" 0x")[0] for item in found if not item.holds]

    deployed = local_chain.head().reference
    as_administrator("GroupMessages", "setPayloadBounds", 1, 2000)(local_chain)
    bounded = local_chain.head().reference
    signer = dev_signer(ADMINISTRATOR)
    new = deploy_implementation(
        Sending(local_chain.endpoint), local_chain.record, "GroupMessages", signer
    )
    address = to_checksum_address(new.address)
    as_administrator("GroupMessages", "upgradeToAndCall", address, b"")(local_chain)
    upgraded = local_chain.head().reference

    assert differences(deployed) == []
    assert differences(bounded) == ["payload bounds of GroupMessages"]
    assert differences(upgraded) == ["implementation slot of GroupMessages"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [(b"", "account"), (b"\xef\x01\x00" + b"\x05" * 20, "account"), (b"\x60\x00", "contract")],
)
def test_accounts__by_their_code__are_contracts_or_not(
    code: bytes, kind: str, local_chain: LocalChain
) -> None:
    parameters = replace(read_parameters(PARAMETERS), message_admin_is_contract=True)
    write_code(local_chain, parameters.message_admin, code)

    block = local_chain.head().reference
    admin, _ = compare_accounts(local_chain.endpoint, parameters, block)

    assert (admin.expected, admin.got) == ("contract", kind)
    assert admin.holds == (kind == "contract")
    assert admin.subject.startswith("kind of message admin")
