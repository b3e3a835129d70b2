"""The validator on a real chain: good wallets of each kind, and wallets that should not exist."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.errors import ChainError, WalletUnanswered
from chainkit.identity.wallets import WalletSignature
from chainkit.signatures import SigningKey, keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit_node.inboxes.contract_wallets import (
    LONGEST_SIGNATURE,
    MOST_SECONDS_AHEAD,
    ContractWallets,
)
from localnet.anvil import Anvil
from localnet.ports import free_port
from support.network.wallet_chain import (
    CHAIN_ID,
    DIGEST,
    OTHER,
    OWNER,
    SUFFIX,
    WalletChain,
    address_of,
    signed,
    wrapped,
)
from support.solidity import encode_call

WAYS = [
    "loop",
    "revert",
    "revert with a megabyte",
    "invalid instruction",
    "return a megabyte",
    "return the magic value and a megabyte",
    "return nothing",
    "return 31 bytes",
    "return the magic value and a bit",
    "return the input",
    "self-destruct",
    "write",
]
"""In the order of HostileWallet's ways."""


@pytest.fixture(scope="module")
def chain() -> Iterator[WalletChain]:
    with Anvil() as anvil:
        yield WalletChain(anvil)


def deployment(owner: SigningKey) -> bytes:
    return encode_call("deploy(address)", "0x" + address_of(owner).hex())


def new_owner(owner: SigningKey) -> bytes:
    return encode_call("setOwner(address)", "0x" + address_of(owner).hex())


# ----------------------------------------------------------------- good wallets


def test_is_valid__deployed_wallet__is_asked_at_the_block_that_the_signature_names(
    chain: WalletChain,
) -> None:
    before = chain.endpoint.head().number
    wallet = chain.wallet(OWNER)
    deployed = chain.endpoint.head().number
    chain.send(wallet, new_owner(OTHER))

    assert chain.is_valid(wallet, signed(OWNER), deployed)
    assert not chain.is_valid(wallet, signed(OWNER))
    assert chain.is_valid(wallet, signed(OTHER))
    assert not chain.is_valid(wallet, signed(OTHER), deployed)
    assert not chain.is_valid(wallet, signed(OWNER), before)
    assert not chain.is_valid(wallet, signed(OWNER, keccak256(b"another text")), deployed)


def test_is_valid__wallet_that_is_not_deployed_yet__is_deployed_for_the_question(
    chain: WalletChain,
) -> None:
    owner = SigningKey(b"\x03" * 32)
    wallet = chain.counterfactual(owner)
    signature = wrapped(chain.factory, deployment(owner), signed(owner))

    assert chain.is_valid(wallet, signature)
    assert not chain.is_valid(wallet, wrapped(chain.factory, deployment(owner), signed(OTHER)))
    assert not chain.is_valid(wallet, wrapped(chain.factory, deployment(OTHER), signed(owner)))
    assert not chain.is_valid(wallet, wrapped(OTHER.public_key[:20], b"", signed(owner)))
    assert not chain.is_valid(wallet, signed(owner))
    assert chain.endpoint.code(wallet, chain.endpoint.head().reference) == b""

    chain.send(chain.factory, deployment(owner))
    # Deployed meanwhile: the factory would fail now, and is not called.
    assert chain.is_valid(wallet, signature)
    assert chain.is_valid(wallet, signed(owner))


def test_is_valid__wallet_that_has_to_be_prepared__is_asked_again(chain: WalletChain) -> None:
    wallet = chain.wallet(OTHER)

    assert not chain.is_valid(wallet, signed(OWNER))
    assert chain.is_valid(wallet, wrapped(wallet, new_owner(OWNER), signed(OWNER)))
    # It accepts before: then nothing is prepared that would change its mind.
    assert chain.is_valid(wallet, wrapped(wallet, new_owner(OWNER), signed(OTHER)))
    assert not chain.is_valid(wallet, wrapped(wallet, b"", signed(OWNER)))


@pytest.mark.parametrize("v", [0, 1, 27, 28, 2, 26, 29, 255])
def test_is_valid__account_without_code__is_asked_for_its_key(chain: WalletChain, v: int) -> None:
    right = signed(OWNER)
    rest = right[64] - 27

    is_valid = chain.is_valid(address_of(OWNER), right[:64] + bytes([v]))

    assert is_valid is (v in (rest, 27 + rest))
    assert not chain.is_valid(address_of(OTHER), right)


@pytest.mark.parametrize(
    "signature",
    [b"", bytes(64), bytes(65), bytes(64) + b"\x1b", signed(OWNER) + b"\0", SUFFIX],
    ids=bytes.hex,
)
@pytest.mark.parametrize(
    "signer", [address_of(OWNER), bytes(20), bytes(19) + b"\4"], ids=["person", "zero", "identity"]
)
def test_is_valid__account_without_code_and_no_signature__is_invalid(
    chain: WalletChain, signer: bytes, signature: bytes
) -> None:
    assert not chain.is_valid(signer, signature)


def test_is_valid__high_s__is_valid(chain: WalletChain) -> None:
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    low = signed(OWNER)
    s = order - int.from_bytes(low[32:64], "big")
    high = low[:32] + s.to_bytes(32, "big") + bytes([55 - low[64]])

    assert chain.is_valid(address_of(OWNER), high)


# -------------------------------------------------------------- hostile wallets


@pytest.mark.conforms("I15")
@pytest.mark.parametrize("way", range(len(WAYS)), ids=WAYS)
@pytest.mark.parametrize("form", ["plain", "wrapped", "as a factory"])
def test_is_valid__hostile_wallet__is_invalid_and_never_unanswered(
    chain: WalletChain, way: int, form: str
) -> None:
    hostile = chain.deploy("HostileWallet", ("uint8",), way)
    accepts = WAYS[way] == "return the magic value and a megabyte"

    if form == "plain":
        assert chain.is_valid(hostile, b"signature") is accepts
    elif form == "wrapped":
        # It is asked, called as a factory, and asked again.
        assert chain.is_valid(hostile, wrapped(hostile, b"", b"signature")) is accepts
    else:
        wallet = chain.wallet(OTHER)
        assert not chain.is_valid(wallet, wrapped(hostile, b"call", signed(OWNER)))
        assert chain.is_valid(wallet, wrapped(hostile, b"call", signed(OTHER)))


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.mark.conforms("I15")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 31,
        word(1) * 2,
        word(1) + word(96) + word(96),
        word(1) + word(96) + word(128) + word(1) + word(0),
        word(1) + word(2**256 - 1) + word(96) + word(0),
        word(1) + word(96) + word(2**256 - 32) + word(0),
        word(1) + word(2**64) + word(96) + word(0),
        word(1) + word(96) + word(96) + word(2**256 - 1),
        word(1) + word(96) + word(96) + word(1),
        word(2**160) + word(96) + word(96) + word(0),
    ],
    ids=range(11),
)
def test_is_valid__malformed_content_before_the_suffix__is_invalid(
    chain: WalletChain, content: bytes
) -> None:
    for signer in (address_of(OWNER), chain.factory):
        assert not chain.is_valid(signer, content + SUFFIX)


def test_is_valid__wrapped_at_the_edge_of_its_bounds__is_read(chain: WalletChain) -> None:
    wallet = chain.wallet(OWNER)
    signature = signed(OWNER)
    # Both parts are the same bytes, and end with the last byte before the suffix.
    content = word(1) + word(96) + word(96) + word(len(signature)) + signature

    assert chain.is_valid(wallet, content + SUFFIX)
    assert not chain.is_valid(wallet, content[:-1] + SUFFIX)


# ---------------------------------------------------------------- gas and bytes


@pytest.mark.conforms("I15")
def test_is_valid__endpoint_that_gives_too_little_gas__is_not_answered(chain: WalletChain) -> None:
    hostile = chain.deploy("HostileWallet", ("uint8",), 0)
    wallet = chain.wallet(OWNER)

    answers = {gas: chain.answer(hostile, b"", gas * 100_000) for gas in range(20, 160, 7)}
    assert set(answers.values()) == {b"\0", b"\2"}
    # Not between: the wallet has either all of its gas, or is not asked.
    assert list(answers.values()) == sorted(answers.values(), reverse=True)
    assert chain.answer(wallet, signed(OWNER), 5_000_000) == b"\2"
    assert chain.answer(wallet, signed(OWNER), 7_000_000) == b"\1"
    assert chain.answer(address_of(OWNER), signed(OWNER), 1_000_000) == b"\1"


@pytest.mark.conforms("I15")
def test_is_valid__longest_signature_of_a_wallet_that_loops__is_invalid(
    chain: WalletChain,
) -> None:
    hostile = chain.deploy("HostileWallet", ("uint8",), 0)
    rest = b"\xff" * (LONGEST_SIGNATURE - len(wrapped(hostile, b"", b"")))

    for inner in (rest, rest[:-32] + bytes(32)):
        signature = wrapped(hostile, b"", inner)
        assert len(signature) == LONGEST_SIGNATURE
        assert not chain.is_valid(hostile, signature)


# ------------------------------------------------------------- blocks, endpoints


def test_is_valid__chain_with_the_instructions_of_2018__is_asked() -> None:
    with Anvil("--hardfork", "byzantium") as anvil:
        wallet, magic = b"\x77" * 20, bytes.fromhex("1626ba7e") + bytes(28)
        # PUSH32 the magic value, store it, return it.
        code = b"\x7f" + magic + bytes.fromhex("60005260206000f3")
        anvil.request("anvil_setCode", hex0x(wallet), hex0x(code))
        anvil.request("anvil_mine", "0x1")
        wallets = ContractWallets({CHAIN_ID: [anvil.endpoint]}).at(time.time_ns() + 10**12)

        def is_valid(signer: bytes, signature: bytes) -> bool:
            return wallets.is_valid(WalletSignature(CHAIN_ID, signer, 1, DIGEST, signature))

        assert is_valid(wallet, b"")
        assert is_valid(wallet, wrapped(wallet, b"", b""))
        assert is_valid(address_of(OWNER), signed(OWNER))
        assert not is_valid(address_of(OTHER), wrapped(wallet, b"", signed(OTHER)))


@pytest.mark.conforms("I15")
def test_is_valid__block_from_the_future__waits_until_the_chain_is_beyond_the_update() -> None:
    with Anvil() as anvil:
        chain = WalletChain(anvil)
        wallet = chain.wallet(OWNER)
        head = chain.endpoint.head()
        at_ns = (head.timestamp + 60 - MOST_SECONDS_AHEAD) * 10**9

        assert chain.is_valid(wallet, signed(OWNER), head.number, at_ns)
        for number in (head.number + 1, head.number + 1000, 2**63 - 1):
            with pytest.raises(WalletUnanswered):
                chain.is_valid(wallet, signed(OWNER), number, at_ns)
        assert not chain.is_valid(wallet, signed(OWNER), 2**64 - 1, at_ns)

        anvil.request("evm_setNextBlockTimestamp", head.timestamp + 61)
        anvil.request("anvil_mine", "0x1")
        # There is such a block now, later than the update.
        assert not chain.is_valid(wallet, signed(OWNER), head.number + 1, at_ns)
        assert not chain.is_valid(wallet, signed(OWNER), head.number + 1000, at_ns)
        assert chain.is_valid(wallet, signed(OWNER), head.number, at_ns)


@pytest.mark.conforms("I15")
def test_is_valid__dead_endpoint__is_not_answered_and_another_one_is_asked() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    dead = Endpoint.connect(nobody, retry=RetryPolicy(attempts=1))
    with Anvil() as anvil:
        chain = WalletChain(anvil)
        wallet = chain.wallet(OWNER)
        number = chain.endpoint.head().number
        question = WalletSignature(CHAIN_ID, wallet, number, DIGEST, signed(OWNER))
        now = time.time_ns() + 10**12

        alone = ContractWallets({CHAIN_ID: [dead]}).at(now)
        with pytest.raises(WalletUnanswered, match="refused") as caught:
            alone.is_valid(question)
        assert isinstance(caught.value.__cause__, ChainError)
        assert ContractWallets({CHAIN_ID: [dead, anvil.endpoint]}).at(now).is_valid(question)
