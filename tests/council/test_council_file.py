"""`chainkit council init`: what an address that is not the council's gives away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE
from localnet.accounts import COUNCIL
from localnet.safe import create_safe
from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.scene import OWNER_NUMBERS, PAYER, CouncilScene, safe_scene

NEVER = "has never acted on chain 31337"
NO_ROLE = "neither owns the registry, nor is offered it, nor administers a log"
STRANGER = dev_address(PAYER)


@pytest.fixture
def scene(local_chain: LocalChain, tmp_path: Path) -> Iterator[CouncilScene]:
    with safe_scene(local_chain, tmp_path) as scene:
        yield scene


def init(chain: LocalChain, folder: Path, address: str, *options: str) -> Outcome:
    place = ("--rpc", chain.url, "--deployment", chain.record_path)
    return run("council", "init", address, "--council", folder / "mine.json", *place, *options)


def cautions(chain: LocalChain, folder: Path, address: str) -> str:
    outcome = init(chain, folder, address, "--json")
    assert outcome.code == 0, outcome.err
    (folder / "mine.json").unlink()
    return "\n".join(outcome.content["cautions"])


def test_init__address_where_nothing_stands__is_told_and_written(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    outcome = init(local_chain, tmp_path, "0x" + "71" * 20)

    shown = " ".join(outcome.out.split())
    assert outcome.code == 0, outcome.err
    assert f"caution this account has no code and {NEVER}" in shown
    assert f"caution this account {NO_ROLE}" in shown
    assert max(map(len, outcome.out.splitlines()[:-1])) <= 100
    assert (tmp_path / "mine.json").exists()


def test_init__account_that_acts_and_holds_the_contracts__has_no_caution(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    assert NEVER in cautions(local_chain, tmp_path, dev_address(COUNCIL))
    local_chain.send(local_chain.record.node_registry.address, _open_updates(True), COUNCIL)

    assert cautions(local_chain, tmp_path, dev_address(COUNCIL)) == ""


def test_init__safe_that_holds_the_contracts__has_no_caution_before_its_first_transaction(
    scene: CouncilScene, tmp_path: Path
) -> None:
    assert cautions(scene.chain, tmp_path, scene.council.address) == ""


def test_init__safe_that_holds_nothing__is_told_so(scene: CouncilScene, tmp_path: Path) -> None:
    owners = [dev_address(number) for number in OWNER_NUMBERS]
    other = create_safe(scene.chain.anvil, "1.4.1", owners, 4, singleton="SafeL2")

    told = cautions(scene.chain, tmp_path, to_checksum_address(other))

    assert NO_ROLE in told
    assert NEVER not in told


@pytest.mark.parametrize("contract", ["NodeRegistry", *SEQUENCED_LOGS])
def test_init__account_with_one_role_or_an_offer_of_it__is_no_stranger(
    contract: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    addresses = {each.name: each.address for each in local_chain.record.contracts}
    encode = shipped_interface(contract).encode
    if contract == "NodeRegistry":
        call = encode("transferOwnership", STRANGER)
    else:
        call = encode("grantRole", DEFAULT_ADMIN_ROLE, STRANGER)
    assert NO_ROLE in cautions(local_chain, tmp_path, STRANGER)

    local_chain.send(addresses[contract], call, COUNCIL)

    assert NO_ROLE not in cautions(local_chain, tmp_path, STRANGER)


def _open_updates(is_open: bool) -> bytes:
    return shipped_interface("NodeRegistry").encode("setHttpAddressUpdatesOpen", is_open)
