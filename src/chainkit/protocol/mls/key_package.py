"""Key packages: the keys with which an installation is invited (RFC 9420 §10, leaf nodes §7.2).

A node stores a key package for strangers to fetch, so that the package must be whole, signed by the
installation, and of use now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.labelled_signature import verify_with_label
from chainkit.protocol.mls.message import MLS_VERSION
from chainkit.protocol.mls.presentation import Reader
from chainkit.types import NANOSECONDS_PER_SECOND

MAXIMUM_KEY_PACKAGE_LENGTH: Final = 64 * 1024
"""Most bytes; today's packages have fewer than 2,000, with a post-quantum key among their
extensions."""

_SUBJECT: Final = "key package"
_CIPHER_SUITES: Final = (1, 3)
"""Those of X25519 and Ed25519: with AES-128-GCM, and with ChaCha20-Poly1305 (RFC 9420 §17.1)."""
_KEY_LENGTH: Final = 32
"""Bytes of a public key, of X25519 and of Ed25519."""
_BASIC_CREDENTIAL: Final = 1
_OF_KEY_PACKAGE: Final = 1
"""``LeafNodeSource`` key_package."""
ROLE_EXTENSION: Final = 0xF031
"""An extension of RFC 9420's private range: the leaf node's XIP-31 ContactRole, in one byte.

Members ignore extensions of others' leaf nodes that they do not know (RFC 9420 §7.2, §13.4).
"""
BACKUP_ROLE: Final = b"\2"

_DEFAULT_EXTENSIONS: Final = frozenset(range(1, 6))
"""Extensions that each client supports without listing them (RFC 9420 §7.2, §17.3)."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Bytes as they came, and the signature that follows them."""

    content: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class KeyPackage:
    """A KeyPackage with a basic credential, taken apart."""

    cipher_suite: int
    init_key: bytes
    """32 bytes: the key to which welcomes are encrypted."""
    installation_key: bytes
    """32 bytes, Ed25519: the leaf node's signature key, which is the installation's identity."""
    credential: bytes
    """Identity of the basic credential, as it came."""
    not_before: int
    """Seconds since 1970."""
    not_after: int
    """Seconds since 1970."""
    is_backup: bool
    """Whether the leaf node has the role of a backup, which only reads (XIP-31)."""
    leaf_node: Signed
    package: Signed


@dataclass(frozen=True, slots=True)
class _LeafNode:
    encryption_key: bytes
    signature_key: bytes
    credential: bytes
    not_before: int
    not_after: int
    is_backup: bool
    signed: Signed


def parse_key_package(data: bytes) -> KeyPackage:
    """Decode a serialized KeyPackage, to its last byte. Signatures are not checked here.

    Raises MalformedMls where the package does not parse, is too large, of another version, cipher
    suite or kind of credential, or breaks a rule of RFC 9420 §7.3 and §10.1 that needs no clock.
    """
    if len(data) > MAXIMUM_KEY_PACKAGE_LENGTH:
        expected = f"at most {MAXIMUM_KEY_PACKAGE_LENGTH} bytes"
        raise MalformedMls(_SUBJECT, expected, f"{len(data)} bytes")
    reader = Reader(data, _SUBJECT)
    if (version := reader.integer(2)) != MLS_VERSION:
        raise reader.malformed(f"version {MLS_VERSION}", version)
    if (cipher_suite := reader.integer(2)) not in _CIPHER_SUITES:
        raise reader.malformed("cipher suite 1 or 3", cipher_suite)
    init_key = _key(reader)
    leaf_node = _leaf_node(reader)
    if leaf_node.encryption_key == init_key:
        raise reader.malformed("an encryption key other than the init key", "the same")
    _extensions(reader)
    package = Signed(reader.read(0), reader.vector())
    reader.finish()
    return KeyPackage(
        cipher_suite=cipher_suite,
        init_key=init_key,
        installation_key=leaf_node.signature_key,
        credential=leaf_node.credential,
        not_before=leaf_node.not_before,
        not_after=leaf_node.not_after,
        is_backup=leaf_node.is_backup,
        leaf_node=leaf_node.signed,
        package=package,
    )


def check_key_package(package: KeyPackage, now_ns: int) -> None:
    """Check the lifetime and both signatures of a key package (RFC 9420 §7.3, §10.1).

    ``now_ns`` is in nanoseconds since 1970. Raises MalformedMls where the package is not valid yet
    or no longer, and InvalidSignature where its installation's signature is invalid.
    """
    now = now_ns // NANOSECONDS_PER_SECOND
    if not package.not_before <= now <= package.not_after:
        lifetime = f"one from {package.not_before} to {package.not_after}"
        raise MalformedMls(_SUBJECT, f"a lifetime that contains {now}", lifetime)
    for subject, label, signed in (
        ("leaf node", b"LeafNodeTBS", package.leaf_node),
        (_SUBJECT, b"KeyPackageTBS", package.package),
    ):
        verify_with_label(subject, package.installation_key, label, *_parts(signed))


def _parts(signed: Signed) -> tuple[bytes, bytes]:
    return signed.content, signed.signature


def _leaf_node(reader: Reader) -> _LeafNode:
    start = reader.position
    encryption_key, signature_key = _key(reader), _key(reader)
    if (credential_type := reader.integer(2)) != _BASIC_CREDENTIAL:
        raise reader.malformed("a basic credential (1)", credential_type)
    credential = reader.vector()
    supported = _capabilities(reader)
    if (source := reader.integer(1)) != _OF_KEY_PACKAGE:
        raise reader.malformed("the leaf node of a key package (1)", source)
    not_before, not_after = reader.integer(8), reader.integer(8)
    extensions = _extensions(reader)
    unsupported = extensions.keys() - supported - _DEFAULT_EXTENSIONS
    if unsupported:
        expected = "extensions that the leaf node's capabilities list"
        raise reader.malformed(expected, hex(min(unsupported)))
    signed = Signed(reader.read(start), reader.vector())
    is_backup = extensions.get(ROLE_EXTENSION) == BACKUP_ROLE
    return _LeafNode(
        encryption_key, signature_key, credential, not_before, not_after, is_backup, signed
    )


def _capabilities(reader: Reader) -> frozenset[int]:
    """Return the supported extensions; check the support of what the leaf node itself uses."""
    versions, _, extensions, _, credentials = (frozenset(_numbers(reader)) for _ in range(5))
    if MLS_VERSION not in versions:
        raise reader.malformed(
            f"capabilities with version {MLS_VERSION}", f"{len(versions)} others"
        )
    if _BASIC_CREDENTIAL not in credentials:
        expected = f"capabilities with basic credentials ({_BASIC_CREDENTIAL})"
        raise reader.malformed(expected, f"{len(credentials)} others")
    return extensions


def _numbers(reader: Reader) -> Iterator[int]:
    items = reader.items()
    while not items.is_at_end:
        yield items.integer(2)


def _extensions(reader: Reader) -> dict[int, bytes]:
    """Return a list of extensions by type, each of which may occur once (RFC 9420 §13.4)."""
    found: dict[int, bytes] = {}
    items = reader.items()
    while not items.is_at_end:
        extension = items.integer(2)
        if extension in found:
            raise items.malformed(f"extension {extension:#x} once", "twice")
        found[extension] = items.vector()
    return found


def _key(reader: Reader) -> bytes:
    key = reader.vector()
    if len(key) != _KEY_LENGTH:
        raise reader.malformed(f"a key of {_KEY_LENGTH} bytes", f"{len(key)} bytes")
    return key
