"""Decisions of the engine before any child is asked."""

import hashlib
from dataclasses import replace

import pytest
from Crypto.PublicKey import ECC

from chainkit.errors import ConfigurationError
from chainkit.signatures import keccak256
from chainkit_client.mls.engine import Installation, KeyPackage, MlsRefused, NotInvited
from chainkit_client.mls.node_engine import (
    LONGEST_LIFETIME_SECONDS,
    MOST_CREDENTIAL_BYTES,
    MOST_GROUP_ID_BYTES,
    MOST_KEY_PACKAGE_BYTES,
    MOST_MESSAGE_BYTES,
    MOST_PLAINTEXT_BYTES,
    NodeEngine,
)
from chainkit_client.mls.welcome_bounds import MOST_INVITED
from support.client.parties import child_pid
from support.mls import SECONDS, KeyPackageFields, vector

HEAD = b"\0\1\0\5"
FIELDS = KeyPackageFields()


@pytest.fixture
def engine() -> NodeEngine:
    return NodeEngine(now=lambda: SECONDS)


def test_new_installation__secret__is_the_seed_of_the_public_key(engine: NodeEngine) -> None:
    first, second = (engine.new_installation(b"inbox") for _ in range(2))

    key = ECC.construct(curve="Ed25519", seed=first.secret).public_key()
    assert key.export_key(format="raw") == first.public_key
    assert first.public_key != second.public_key
    assert first.credential == b"inbox"


def test_repr__of_what_holds_secrets__shows_none() -> None:
    secret = keccak256(b"secret")

    for shown in (repr(Installation(b"inbox", b"key", secret)), repr(KeyPackage(b"offer", secret))):
        assert "secret" not in shown
        assert repr(secret)[2:-1] not in shown


def test_describe_key_package__signed_and_valid_now__names_its_maker(engine: NodeEngine) -> None:
    member = engine.describe_key_package(HEAD + FIELDS.written())

    assert (member.leaf, member.credential) == (-1, b"inbox")
    assert member.public_key == FIELDS.installation_key


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (replace(FIELDS, lifetime=(SECONDS + 1, SECONDS + 9)), "a lifetime that contains"),
        (replace(FIELDS, lifetime=(SECONDS - 9, SECONDS - 1)), "a lifetime that contains"),
        (replace(FIELDS, labels=(b"LeafNodeTBS", b"LeafNodeTBS")), "signature"),
        (replace(FIELDS, labels=(b"KeyPackageTBS", b"KeyPackageTBS")), "signature"),
        (replace(FIELDS, cipher_suite=2), "cipher suite 1 or 3"),
        (replace(FIELDS, credential=b"\0\2" + vector(b"certificate")), "credential"),
        (
            replace(FIELDS, lifetime=(SECONDS, SECONDS + LONGEST_LIFETIME_SECONDS + 1)),
            f"a lifetime of at most {LONGEST_LIFETIME_SECONDS} s",
        ),
        (
            replace(FIELDS, credential=b"\0\1" + vector(bytes(MOST_CREDENTIAL_BYTES + 1))),
            f"credential: expected at most {MOST_CREDENTIAL_BYTES} bytes",
        ),
        (replace(FIELDS, rest=b"!"), "key package"),
    ],
)
def test_describe_key_package__of_no_use__is_refused(
    engine: NodeEngine, fields: KeyPackageFields, expected: str
) -> None:
    with pytest.raises(MlsRefused, match=expected):
        engine.describe_key_package(HEAD + fields.written())


def test_describe_key_package__of_the_longest_lifetime__is_accepted(engine: NodeEngine) -> None:
    longest = replace(FIELDS, lifetime=(SECONDS, SECONDS + LONGEST_LIFETIME_SECONDS))

    assert engine.describe_key_package(HEAD + longest.written()).credential == b"inbox"


def test_describe_key_package__another_message__is_refused(engine: NodeEngine) -> None:
    for other in (FIELDS.written(), b"\0\1\0\3" + FIELDS.written(), b"", HEAD):
        with pytest.raises(MlsRefused):
            engine.describe_key_package(other)


def test_call__with_more_bytes_than_the_bound__is_refused_without_a_child(
    engine: NodeEngine,
) -> None:
    installation = engine.new_installation(b"inbox")
    offer = KeyPackage(b"", b"")
    refused = [
        lambda: engine.new_installation(bytes(MOST_CREDENTIAL_BYTES + 1)),
        lambda: engine.describe_key_package(bytes(MOST_KEY_PACKAGE_BYTES + 1)),
        lambda: engine.create(installation, bytes(MOST_GROUP_ID_BYTES + 1)),
        lambda: engine.join(installation, offer, bytes(MOST_MESSAGE_BYTES + 1)),
        lambda: engine.receive(b"", bytes(MOST_MESSAGE_BYTES + 1)),
        lambda: engine.encrypt(b"", bytes(MOST_PLAINTEXT_BYTES), b"!"),
        lambda: engine.update(b"", bytes(MOST_PLAINTEXT_BYTES + 1)),
        lambda: engine.add(b"", [], b""),
        lambda: engine.remove(b"", [], b""),
    ]

    for call in refused:
        with pytest.raises(MlsRefused):
            call()
    assert child_pid(engine) is None


def test_engine__settings_that_mean_nothing__are_refused() -> None:
    with pytest.raises(ConfigurationError, match="cipher suite: expected 1 or 3, got 2"):
        NodeEngine(cipher_suite=2)
    with pytest.raises(ConfigurationError, match="past epochs: expected 0 or more, got -1"):
        NodeEngine(past_epochs=-1)


SECRET = vector(b"") * 2
REFERENCE = hashlib.sha256(
    vector(b"MLS 1.0 KeyPackage Reference") + vector(FIELDS.written())
).digest()


def welcome_to(*references: bytes) -> bytes:
    return welcome_with(b"".join(vector(each) + SECRET for each in references))


def welcome_with(secrets: bytes) -> bytes:
    return b"\0\1\0\3\0\1" + vector(secrets) + vector(b"group info")


@pytest.mark.parametrize(
    ("welcome", "refusal"),
    [
        (b"no MLS", NotInvited),
        (welcome_to(), NotInvited),
        (welcome_with((vector(b"") + SECRET) * 1_300_000), NotInvited),
        (welcome_to(*[b""] * MOST_INVITED, REFERENCE), NotInvited),
        (welcome_to(REFERENCE, *[b""] * MOST_INVITED), MlsRefused),
    ],
    ids=["no MLS", "to nobody", "empty secrets", "behind the bound", "more than a group"],
)
def test_join__welcome_of_a_stranger__is_refused_before_any_child_is_asked(
    engine: NodeEngine, welcome: bytes, refusal: type[MlsRefused]
) -> None:
    offer = KeyPackage(HEAD + FIELDS.written(), b"secret")

    with pytest.raises(MlsRefused) as refused:
        engine.join(Installation(b"inbox", FIELDS.installation_key, b"s" * 32), offer, welcome)

    assert type(refused.value) is refusal
    assert child_pid(engine) is None
