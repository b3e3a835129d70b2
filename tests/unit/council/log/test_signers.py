from chainkit.council.log.signers import Signer, signers_of
from support.council.safes import Owner, owner, owners_of, second_form

HASH = b"\x5a" * 32
OTHER_HASH = b"\x5b" * 32
ALICE, BOB, CAROL = owners_of(3)
OWNERS = frozenset(each.address for each in (ALICE, BOB, CAROL))
STRANGER = owner(9)


def read(signatures: bytes, **changes: object) -> tuple[dict[str, Signer], str]:
    given = {"owners": OWNERS, "approvals": (), "caller": None, **changes}
    found, fault = signers_of(HASH, signatures, **given)  # type: ignore[arg-type]
    assert len({each.address for each in found}) == len(found)
    return {each.address: each for each in found}, fault


def word(value: int) -> bytes:
    return value.to_bytes(32, "big")


def keyless(who: Owner, kind: int, place: int = 0) -> bytes:
    return bytes.fromhex(who.address[2:]).rjust(32, b"\0") + word(place) + bytes([kind])


def test_signers__keys_of_owners__are_proved_whichever_way_they_signed() -> None:
    found, fault = read(ALICE.sign(HASH) + BOB.eth_sign(HASH))

    assert found == {
        ALICE.address: Signer(ALICE.address, True, True, ""),
        BOB.address: Signer(BOB.address, True, True, ""),
    }
    assert fault == ""


def test_signers__signature_of_another_hash__names_no_owner() -> None:
    found, fault = read(ALICE.sign(OTHER_HASH))

    assert ALICE.address not in found
    assert not any(each.was_owner for each in found.values())
    assert fault == ""


def test_signers__stranger__was_no_owner() -> None:
    found, _ = read(STRANGER.sign(HASH))

    assert not found[STRANGER.address].was_owner


def test_signers__same_owner_twice__counts_once() -> None:
    found, _ = read(keyless(ALICE, 1) + ALICE.sign(HASH) + ALICE.eth_sign(HASH))

    assert found == {ALICE.address: Signer(ALICE.address, True, True, "")}


def test_signers__claim_behind_a_proof__does_not_undo_it() -> None:
    found, _ = read(ALICE.sign(HASH) + keyless(ALICE, 1))

    assert found[ALICE.address].is_proved


def test_signers__approval__is_proved_by_its_event_for_this_hash_only() -> None:
    signatures = keyless(ALICE, 1) + keyless(BOB, 1)
    approvals = {(HASH, ALICE.address), (OTHER_HASH, BOB.address)}

    found, _ = read(signatures, approvals=approvals)

    assert (found[ALICE.address].is_proved, found[BOB.address].is_proved) == (True, False)


def test_signers__approval_of_the_caller__is_his_own_word() -> None:
    found, _ = read(keyless(ALICE, 1) + keyless(BOB, 1), caller=ALICE.address)

    assert (found[ALICE.address].is_proved, found[BOB.address].is_proved) == (True, False)


def test_signers__contract__is_named_and_not_proved() -> None:
    inner = STRANGER.sign(HASH)
    signatures = ALICE.sign(HASH) + keyless(BOB, 0, 130) + word(len(inner)) + inner

    found, fault = read(signatures)

    assert set(found) == {ALICE.address, BOB.address}
    assert not found[BOB.address].is_proved
    assert found[BOB.address].remark.startswith("a contract's signature")
    assert fault == ""


def test_signers__contract_that_points_into_the_signatures__hides_none_behind_it() -> None:
    found, _ = read(keyless(BOB, 0, 0) + ALICE.sign(HASH))

    assert found[ALICE.address].is_proved


def test_signers__broken_signatures__are_said_and_the_others_read() -> None:
    high = second_form(BOB.sign(HASH))
    unknown = CAROL.sign(HASH)[:64] + b"\x63"

    found, fault = read(high + unknown + ALICE.sign(HASH) + b"\x01\x02")

    assert set(found) == {ALICE.address}
    assert "signature 1 is none" in fault
    assert "signature 2 is none: V 99" in fault
    assert "2 bytes behind the signatures are none" in fault


def test_signers__no_bytes__is_nobody() -> None:
    assert read(b"") == ({}, "")
