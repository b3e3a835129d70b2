from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import pytest
from eth_keys import keys
from hypothesis import example, given
from hypothesis import strategies as st

from chainkit.protocol.payer_envelope import payer_digest
from chainkit.protocol.reports import misbehavior_digest
from chainkit.service.node_token import (
    MOST_AGE_SECONDS,
    MOST_AHEAD_SECONDS,
    MOST_TOKEN_LENGTH,
    RefusedToken,
    SignedToken,
    TokenFault,
    read_token,
    token_digest,
    token_in,
    write_token,
)
from chainkit.signatures import SECP256K1_ORDER, SigningKey, keccak256
from chainkit.types import Node

CLIENT, SERVER, THIRD = 100, 200, 300
KEY = SigningKey(b"\1" * 32)
OTHER_KEY = SigningKey(b"\2" * 32)
NOW = 1_800_000_000
HOUR = 3600
HEADER = {"alg": "ES256K", "typ": "JWT"}
CLAIMS = {"sub": "100", "aud": ["200"], "exp": NOW + HOUR, "iat": NOW}


def node(node_id: int, key: SigningKey, is_enabled: bool = True) -> Node:
    return Node(node_id, key.public_key, "http://127.0.0.1:1", is_enabled)


NODES = {CLIENT: node(CLIENT, KEY), SERVER: node(SERVER, OTHER_KEY)}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims: object = CLAIMS, header: object = HEADER, key: SigningKey = KEY) -> str:
    """A token, whose header and claims are JSON's values, or bytes as they are."""
    parts = [
        encoded(part if isinstance(part, bytes) else json.dumps(part).encode())
        for part in (header, claims)
    ]
    signed = ".".join(parts)
    return f"{signed}.{encoded(key.sign(token_digest(signed)))}"


def claims(**changes: object) -> dict[str, object]:
    return {**CLAIMS, **changes}


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in CLAIMS.items() if key != name}


def checked(
    text: str, own_id: int | None = SERVER, now: float = NOW, nodes: Any = NODES
) -> SignedToken:
    found = read_token(text)
    found.check_issued(own_id, now)
    found.check_registered(nodes)
    return found


def fault_of(text: str, **given: Any) -> TokenFault:
    with pytest.raises(RefusedToken) as caught:
        checked(text, **given)
    return caught.value.fault


def signed_by(text: str, digest: bytes, key: SigningKey = KEY) -> str:
    """A token whose signature is over something else."""
    return f"{text.rpartition('.')[0]}.{encoded(key.sign(digest))}"


def with_signature(text: str, signature: bytes) -> str:
    return f"{text.rpartition('.')[0]}.{encoded(signature)}"


def signature_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.rpartition(".")[2] + "=")


@pytest.mark.conforms("N35")
def test_write_token__for_a_server__is_the_jwt_that_todays_nodes_write() -> None:
    header, payload, signature = write_token(KEY, CLIENT, SERVER, NOW, NOW + HOUR).split(".")

    padded = [base64.urlsafe_b64decode(part + "==") for part in (header, payload, signature)]
    assert json.loads(padded[0]) == {"alg": "ES256K", "typ": "JWT"}
    assert json.loads(padded[1]) == CLAIMS
    digest = keccak256(b"jwt|" + f"{header}.{payload}".encode())
    # An independent implementation of the curve.
    assert padded[2] == keys.PrivateKey(b"\1" * 32).sign_msg_hash(digest).to_bytes()


@pytest.mark.conforms("N35")
@pytest.mark.parametrize(
    "given",
    [CLAIMS, {"sub": "100", "aud": "200", "iat": NOW}, claims(aud=["300", "200"], version="1.2.0")],
    ids=["today", "XIP-49", "several servers and a version"],
)
def test_read_token__form_that_nodes_send__names_the_client(given: object) -> None:
    assert checked(token(given)).subject == CLIENT


def test_token_in__metadata_value__leaves_out_the_scheme() -> None:
    assert [token_in(text) for text in ("a.b.c", "Bearer a.b.c", "bearer a.b.c")] == ["a.b.c"] * 3


@pytest.mark.conforms("N35")
@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "typ": "JWT"},
        {"alg": "ES256", "typ": "JWT"},
        {"alg": "HS256", "typ": "JWT"},
        {"alg": "ES256K", "typ": "JWS"},
        {"alg": "ES256K"},
        {"typ": "JWT"},
    ],
)
def test_read_token__another_algorithm_or_type__is_refused(header: object) -> None:
    assert fault_of(token(header=header)) is TokenFault.WRONG_ALGORITHM


@pytest.mark.conforms("N35")
@pytest.mark.parametrize(
    "digest_of",
    [
        lambda signed: keccak256(signed),
        lambda signed: payer_digest(signed),
        lambda signed: payer_digest(signed, SERVER),
        lambda signed: misbehavior_digest(signed),
    ],
    ids=["no label", "payer", "payer and target", "misbehavior"],
)
def test_check__signature_for_another_purpose__is_no_token(digest_of: Any) -> None:
    text = token()
    signed = text.rpartition(".")[0].encode()

    assert fault_of(signed_by(text, digest_of(signed))) is TokenFault.WRONG_KEY


@pytest.mark.conforms("N36")
def test_check__subject_that_is_not_registered__is_refused() -> None:
    assert fault_of(token(claims(sub="300"))) is TokenFault.UNKNOWN_SUBJECT


@pytest.mark.conforms("N37")
def test_check__disabled_subject__is_refused_until_it_is_enabled() -> None:
    disabled = {CLIENT: node(CLIENT, KEY, is_enabled=False)}

    assert fault_of(token(), nodes=disabled) is TokenFault.DISABLED_SUBJECT
    assert checked(token()).subject == CLIENT


@pytest.mark.conforms("N38")
@pytest.mark.parametrize("own_id", [THIRD, CLIENT, 20, None])
def test_check__token_for_another_server__is_refused(own_id: int | None) -> None:
    assert fault_of(token(), own_id=own_id) is TokenFault.WRONG_AUDIENCE


@pytest.mark.conforms("N38")
@pytest.mark.parametrize("audience", [[], "", "0200", "2000", ["100", "300"], "100,200"])
def test_check__audience_without_the_server__is_refused(audience: object) -> None:
    assert fault_of(token(claims(aud=audience))) is TokenFault.WRONG_AUDIENCE


@pytest.mark.conforms("N39")
def test_check__signature_of_another_registered_key__is_refused() -> None:
    assert fault_of(token(key=OTHER_KEY)) is TokenFault.WRONG_KEY


@pytest.mark.conforms("N39")
def test_check__claims_changed_after_they_were_signed__are_refused() -> None:
    changed = token(claims(iat=NOW + 1)).split(".")
    changed[2] = token().split(".")[2]

    assert fault_of(".".join(changed)) is TokenFault.WRONG_KEY


@pytest.mark.conforms("N39")
def test_check__key_that_the_registry_replaced__is_refused() -> None:
    assert fault_of(token(), nodes={CLIENT: node(CLIENT, OTHER_KEY)}) is TokenFault.WRONG_KEY


@pytest.mark.conforms("N39")
@pytest.mark.parametrize(
    "change",
    [
        lambda signature: b"",
        lambda signature: signature[:64],
        lambda signature: signature + b"\0",
        lambda signature: signature[:64] + bytes([signature[64] + 27]),
        lambda signature: bytes(65),
        lambda signature: (
            signature[:32]
            + (SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
            + bytes([1 - signature[64]])
        ),
    ],
    ids=["none", "no V", "longer", "V of Ethereum", "zeros", "high S"],
)
def test_read_token__signature_of_nobody__is_refused(change: Any) -> None:
    text = token()

    fault = fault_of(with_signature(text, change(signature_of(text))))

    assert fault is TokenFault.INVALID_SIGNATURE


@pytest.mark.conforms("N40")
@pytest.mark.parametrize(
    ("age", "fault"),
    [
        (MOST_AGE_SECONDS, None),
        (MOST_AGE_SECONDS + 1, TokenFault.TOO_OLD),
        (-MOST_AHEAD_SECONDS, None),
        (-MOST_AHEAD_SECONDS - 1, TokenFault.FROM_THE_FUTURE),
    ],
)
def test_check__age_of_a_token__is_up_to_an_hour_and_from_a_minute_ahead(
    age: int, fault: TokenFault | None
) -> None:
    assert (MOST_AGE_SECONDS, MOST_AHEAD_SECONDS) == (60 * 60, 60)
    text = token({"sub": "100", "aud": "200", "iat": NOW - age})

    if fault is None:
        assert checked(text).subject == CLIENT
    else:
        assert fault_of(text) is fault


@pytest.mark.parametrize("expires_at", [NOW, NOW - 1, 0])
def test_check__expired_token__is_refused(expires_at: int) -> None:
    assert fault_of(token(claims(exp=expires_at, iat=NOW - 5))) is TokenFault.EXPIRED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        token() + ".",
        token(without("sub")),
        token(without("aud")),
        token(without("iat")),
        token(claims(sub=100)),
        token(claims(sub="0100")),
        token(claims(sub="0")),
        token(claims(sub="-100")),
        token(claims(sub="4294967296")),
        token(claims(sub="١٠٠")),
        token(claims(aud=200)),
        token(claims(aud=[200])),
        token(claims(aud={"200": 1})),
        token(claims(iat=True)),
        token(claims(iat=float(NOW))),
        token(claims(iat=str(NOW))),
        token(claims(iat=-1)),
        token(claims(iat=10**300)),
        token(claims(iat=None)),
        token(claims(exp=True)),
        token(claims(exp=None)),
        token(claims(exp=NOW + 0.5)),
        token(b'{"sub":"300","sub":"100","aud":"200","iat":%d}' % NOW),
        token(header=b'{"alg":"none","alg":"ES256K","typ":"JWT"}'),
        token(header={**HEADER, "crit": ["exp"]}),
        token(header=[HEADER]),
        token(b"[]"),
        token(b"{"),
        token(b"\xff"),
        token(b"[" * 2000),
        token(claims(padding="a" * MOST_TOKEN_LENGTH)),
        token().replace(".", "=.", 1),
        token() + "=",
        token()[:-1] + "/",
        token() + "\n",
        "é" + token(),
        "Bearer " + token(),
    ],
)
def test_read_token__another_form__is_refused_as_malformed(text: str) -> None:
    assert fault_of(text) is TokenFault.MALFORMED


def test_read_token__bits_behind_the_last_byte__are_refused() -> None:
    text = token()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # 65 bytes leave two bits of the last character over.
    twins = [text[:-1] + alphabet[alphabet.index(text[-1]) + number] for number in (1, 2, 3)]

    assert {fault_of(twin) for twin in twins} == {TokenFault.MALFORMED}
    assert len({signature_of(each) for each in (text, *twins)}) == 1


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
@example("\ud800.a.b")
@example("." * MOST_TOKEN_LENGTH)
def test_read_token__any_text__raises_the_one_error(text: str) -> None:
    assert fault_of(text) is TokenFault.MALFORMED


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["sub", "aud", "iat", "exp", "alg", "typ", "crit", "a"])
OBJECTS = st.dictionaries(NAMES, PARTS | st.sampled_from(["100", "200", NOW, "ES256K", "JWT"]))


@given(OBJECTS.map(lambda made: {**HEADER, **made}), OBJECTS.map(lambda made: {**CLAIMS, **made}))
def test_read_token__any_claims__are_read_or_raise_the_one_error(
    header: dict[str, Any], given_claims: dict[str, Any]
) -> None:
    try:
        found = read_token(token(given_claims, header))
    except RefusedToken:
        return
    assert (str(found.subject), found.issued_at) == (given_claims["sub"], given_claims["iat"])


@given(st.integers(0, len(token()) - 1), st.characters(max_codepoint=127))
def test_check__one_character_changed__is_refused(place: int, character: str) -> None:
    text = token()
    changed = text[:place] + character + text[place + 1 :]

    if changed != text:
        assert fault_of(changed) in TokenFault


def test_refused_token__in_words__repeats_no_part_of_it_and_survives_pickling() -> None:
    with pytest.raises(RefusedToken) as caught:
        checked(token(), nodes={})
    error = caught.value
    copy = pickle.loads(pickle.dumps(error))

    assert str(error) == "token: expected a node that is registered, got node 100"
    assert (str(copy), copy.fault) == (str(error), TokenFault.UNKNOWN_SUBJECT)
    assert not any(part in str(error) for part in token().split("."))
