from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.safe import (
    check_signatures,
    contract_signature,
    pack,
    recover_owner,
    signer_of,
)
from chainkit.errors import InvalidSignature
from support.council.safe_eth_py import safe_eth_py
from support.council.safes import Owner, owner, owners_of, second_form, unpack
from support.vectors import case_name, from_hex, load

CASES = load("safe")["transactions"]
HASH = bytes(range(32))
OWNERS = owners_of(5)
ADDRESSES = [one.address for one in OWNERS]
STRANGER = owner(99)

hashes = st.binary(min_size=32, max_size=32)
numbers = st.integers(1, 50)


def ascending(*signers: Owner) -> list[Owner]:
    return sorted(signers, key=lambda one: int(one.address, 16))


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_recover__signatures_of_a_vector__are_their_owners(case: dict[str, Any]) -> None:
    hash_ = from_hex(case["hash"])

    found = [recover_owner(hash_, from_hex(one["signature"])) for one in case["signatures"]]

    assert found == [one["owner"] for one in case["signatures"]]
    assert {one["kind"] for one in case["signatures"]} == {"EIP-712", "eth_sign"}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_pack__signatures_of_a_vector__is_in_the_order_of_ethers(case: dict[str, Any]) -> None:
    signatures = [from_hex(one["signature"]) for one in case["signatures"]]

    assert pack(from_hex(case["hash"]), signatures) == from_hex(case["packed"])


@given(hashes, numbers)
def test_recover__what_a_wallet_signed__is_its_address(hash_: bytes, number: int) -> None:
    account = Account.from_key(number.to_bytes(32))

    typed = Account.unsafe_sign_hash(hash_, account.key).signature
    message = bytes(Account.sign_message(encode_defunct(hash_), account.key).signature)
    as_safe_wants = message[:64] + bytes([message[64] + 4])

    assert recover_owner(hash_, bytes(typed)) == account.address
    assert recover_owner(hash_, as_safe_wants) == account.address


@given(hashes, st.sets(numbers, min_size=1, max_size=5), st.data())
def test_pack__any_owners_and_kinds__are_read_alike_by_safe_eth_py(
    hash_: bytes, chosen: set[int], data: st.DataObject
) -> None:
    signers = data.draw(st.permutations([owner(number) for number in chosen]))
    signatures = [
        one.sign(hash_) if data.draw(st.booleans()) else one.eth_sign(hash_) for one in signers
    ]

    packed = pack(hash_, signatures)

    theirs = safe_eth_py().SafeSignature.parse_signature(packed, hash_)
    assert [one.owner for one in theirs] == [one.address for one in ascending(*signers)]
    assert sorted(unpack(packed)) == sorted(signatures)


def test_check__owners_in_any_order__gives_them_in_the_safes_order() -> None:
    signatures = [one.sign(HASH) for one in reversed(OWNERS[:3])]

    found = check_signatures(HASH, ADDRESSES, signatures)

    assert list(found) == [one.address for one in ascending(*OWNERS[:3])]
    assert set(found.values()) == set(signatures)


def test_check__none__finds_none() -> None:
    assert check_signatures(HASH, ADDRESSES, []) == {}
    assert pack(HASH, []) == b""


def test_check__a_strangers_signature__is_refused_with_its_address() -> None:
    signatures = [OWNERS[0].sign(HASH), STRANGER.sign(HASH)]

    with pytest.raises(InvalidSignature, match=f"got that of {STRANGER.address}") as refused:
        check_signatures(HASH, ADDRESSES, signatures)

    assert refused.value.place == "signature 2"


def test_check__an_owners_signature_of_another_hash__is_a_strangers() -> None:
    with pytest.raises(InvalidSignature, match="that of an owner of the Safe"):
        check_signatures(HASH, ADDRESSES, [OWNERS[0].sign(HASH[::-1])])


def test_check__typed_data_signature_declared_as_eth_sign__is_a_strangers() -> None:
    signature = OWNERS[0].sign(HASH)
    declared = signature[:64] + bytes([signature[64] + 4])

    with pytest.raises(InvalidSignature, match="that of an owner of the Safe"):
        check_signatures(HASH, ADDRESSES, [declared])


@pytest.mark.parametrize("check", [True, False], ids=["check", "pack"])
@pytest.mark.parametrize("second", ["sign", "eth_sign"])
def test_check__same_owner_twice_in_any_kind__is_refused(check: bool, second: str) -> None:
    signatures = [OWNERS[0].sign(HASH), OWNERS[1].sign(HASH), getattr(OWNERS[0], second)(HASH)]

    with pytest.raises(InvalidSignature, match=f"got a second of {ADDRESSES[0]}") as refused:
        check_signatures(HASH, ADDRESSES, signatures) if check else pack(HASH, signatures)

    assert refused.value.place == "signature 3"


@pytest.mark.parametrize("kind", ["sign", "eth_sign"])
def test_recover__second_form_of_a_signature__is_refused(kind: str) -> None:
    signature = getattr(OWNERS[0], kind)(HASH)
    theirs = safe_eth_py().SafeSignature.parse_signature(second_form(signature), HASH)
    assert [one.owner for one in theirs] == [ADDRESSES[0]]

    with pytest.raises(InvalidSignature, match="lower half of the order, got a high S"):
        recover_owner(HASH, second_form(signature))


@pytest.mark.parametrize(
    ("kind", "words"), [(0, "a contract's signature"), (1, "a hash approved on the chain")]
)
def test_recover__kind_without_a_key__is_refused_in_words(kind: int, words: str) -> None:
    # A Safe takes this for the owner's word without any signature of the hash.
    keyless = bytes(12) + bytes.fromhex(ADDRESSES[0][2:]) + bytes(32) + bytes([kind])

    with pytest.raises(InvalidSignature, match=f"V {kind}, {words}"):
        check_signatures(HASH, ADDRESSES, [keyless])


@pytest.mark.parametrize("kind", [*range(2, 27), 29, 30, *range(33, 256)])
def test_recover__any_other_v__is_refused(kind: int) -> None:
    with pytest.raises(InvalidSignature, match=f"got V {kind}$"):
        recover_owner(HASH, OWNERS[0].sign(HASH)[:64] + bytes([kind]))


@pytest.mark.parametrize("length", [0, 64, 66, 130])
def test_recover__another_length__is_refused(length: int) -> None:
    signature = (OWNERS[0].sign(HASH) * 2)[:length]

    with pytest.raises(InvalidSignature, match=f"expected 65 bytes, got {length} bytes"):
        recover_owner(HASH, signature)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_recover__hash_of_another_length__is_refused(length: int) -> None:
    with pytest.raises(InvalidSignature, match=f"expected 32 bytes, got {length} bytes"):
        recover_owner(bytes(length), OWNERS[0].sign(HASH))


@pytest.mark.parametrize("r", [0, 2**256 - 1])
def test_recover__point_off_the_curve__is_refused(r: int) -> None:
    with pytest.raises(InvalidSignature, match="recoverable public key"):
        recover_owner(HASH, r.to_bytes(32) + (1).to_bytes(32) + b"\x1b")


def test_owner__repr__shows_no_secret() -> None:
    assert repr(owner(1)) == "Owner()"


CONTRACTS = [bytes([byte]) * 20 for byte in (0x01, 0xEE)]


def test_pack__keys_contracts_and_approvals__are_read_by_another_reader() -> None:
    tails = [b"one", b"what the other signed, longer than a word of 32 bytes"]
    given = [contract_signature(*pair) for pair in zip(CONTRACTS, tails, strict=True)]
    approved = [OWNERS[1].address, OWNERS[2].address]

    packed = pack(HASH, [OWNERS[0].sign(HASH), *given, OWNERS[1].sign(HASH)], approved)

    theirs = safe_eth_py().SafeSignature.parse_signature(packed, HASH)
    kinds = {one.owner: one.signature_type.name for one in theirs}
    assert list(kinds) == sorted(kinds, key=lambda address: int(address, 16))
    assert kinds == {
        OWNERS[0].address: "EOA",
        OWNERS[1].address: "EOA",
        OWNERS[2].address: "APPROVED_HASH",
        **{to_checksum_address(one): "CONTRACT_SIGNATURE" for one in CONTRACTS},
    }
    found = [one.contract_signature for one in theirs if hasattr(one, "contract_signature")]
    assert [bytes(one) for one in found] == tails


def test_signer__contract_in_the_form_of_one__is_its_address() -> None:
    signature = contract_signature(CONTRACTS[0], b"any")

    assert signer_of(HASH, signature) == to_checksum_address(CONTRACTS[0])


@pytest.mark.parametrize(
    "place", [0, 11, 32, 63, 64, 65, 96], ids=lambda place: f"byte {place} changed"
)
def test_signer__contract_in_any_other_form__is_refused(place: int) -> None:
    signature = bytearray(contract_signature(CONTRACTS[0], b"any"))
    signature[place] ^= 1

    with pytest.raises(InvalidSignature, match="contract's signature"):
        signer_of(HASH, bytes(signature))


@pytest.mark.parametrize("change", [b"", b"more"], ids=["shorter", "longer"])
def test_signer__contract_with_another_length_than_it_says__is_refused(change: bytes) -> None:
    signature = contract_signature(CONTRACTS[0], b"any")

    with pytest.raises(InvalidSignature, match="contract's signature"):
        signer_of(HASH, signature + change if change else signature[:-1])
