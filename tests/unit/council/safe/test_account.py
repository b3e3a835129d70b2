"""Answers that no real contract gives are refused: an endpoint lies, or is broken."""

import eth_abi
import pytest

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.safe.account import SafeAccount, is_safe, read_account
from chainkit.errors import ConfigurationError, InconsistentAnswer
from chainkit.types import BlockReference
from localnet.safe import npm_artifact
from support.endpoints.fake_endpoint import FakeProvider

SAFE = b"\x05" * 20
SINGLETON = b"\x06" * 20
OWNER, MODULE = b"\x07" * 20, b"\x08" * 20
END = bytes(19) + b"\x01"
BLOCK = BlockReference(7, b"\x09" * 32)


def code_of(folder: str, name: str) -> str:
    return str(npm_artifact("1.5.0", folder, name)["deployedBytecode"])


def answers(**functions: bytes) -> FakeProvider:
    """A Safe of one owner without modules, with other answers for some functions."""
    found = {
        "getOwners": eth_abi.encode(["address[]"], [[OWNER]]),
        "getThreshold": eth_abi.encode(["uint256"], [1]),
        "nonce": eth_abi.encode(["uint256"], [4]),
        "getModulesPaginated": page([], END),
    } | functions
    by_selector = {shipped_interface("Safe").selector(name): one for name, one in found.items()}
    code = {SAFE: code_of("proxies", "SafeProxy"), SINGLETON: code_of("", "Safe"), OWNER: "0x"}
    words = {0: "0x" + SINGLETON.rjust(32, b"\0").hex()}
    return FakeProvider(
        {
            "eth_getCode": lambda address, block: code[bytes.fromhex(address[2:])],
            "eth_getStorageAt": lambda address, slot, block: words.get(int(slot, 16), "0x00"),
            "eth_call": lambda call, block: (
                "0x" + by_selector[bytes.fromhex(call["data"][2:10])].hex()
            ),
        }
    )


def page(modules: list[bytes], following: bytes) -> bytes:
    return eth_abi.encode(["address[]", "address"], [modules, following])


def read(provider: FakeProvider) -> SafeAccount:
    return read_account(ContractState(provider.endpoint(), BLOCK), SAFE)


def test_read__all_of_it__is_pinned_to_the_block() -> None:
    provider = answers()

    account = read(provider)

    assert (account.owners, account.threshold, account.nonce) == (("0x" + OWNER.hex(),), 1, 4)
    pins = [params[-1] for calls in provider.requests for _, params in calls]
    pin = {"blockHash": "0x" + BLOCK.hash.hex(), "requireCanonical": True}
    assert pins == [pin] * len(pins)
    assert len(pins) > 5


@pytest.mark.parametrize(
    ("modules", "following"),
    [([], MODULE), ([], bytes(20)), ([MODULE], MODULE), ([MODULE], bytes(20))],
    ids=["nothing yet more", "nothing and no end", "one forever", "one and no end"],
)
def test_read__pages_of_modules_that_never_end__is_refused_and_ends(
    modules: list[bytes], following: bytes
) -> None:
    with pytest.raises(ConfigurationError, match="a list of modules that ends"):
        read(answers(getModulesPaginated=page(modules, following)))


def test_read__no_owner__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="from 1 to its 0 owners, got threshold 1"):
        read(answers(getOwners=eth_abi.encode(["address[]"], [[]])))


@pytest.mark.parametrize("function", ["getOwners", "getThreshold", "nonce", "getModulesPaginated"])
def test_read__answer_that_is_cut_off__is_doubted(function: str) -> None:
    with pytest.raises(InconsistentAnswer, match=f"{function} of Safe"):
        read(answers(**{function: bytes(31)}))


@pytest.mark.parametrize("code", ["ef0100", "ef0100" + "07" * 19, "ef0101" + "07" * 20])
def test_is_safe__code_that_only_begins_like_a_delegation__is_told_by_its_hash(code: str) -> None:
    state = ContractState(FakeProvider({"eth_getCode": "0x" + code}).endpoint(), BLOCK)

    with pytest.raises(ConfigurationError, match=f"got {len(code) // 2} bytes of code, hash 0x"):
        is_safe(state, SAFE)
