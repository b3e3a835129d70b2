"""The installation's keys, and its key packages: the offers to be added to a group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from chainkit.errors import StoreError
from chainkit.signatures import keccak256
from chainkit_client.mls.engine import Installation, KeyPackage
from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal

_SECRET: Final = "installation.secret"
_PACKAGE_SECRET: Final = "key_packages.secret"
_PACKAGES: Final = schema.key_packages
_SEED_LENGTH: Final = 32
_BACKUP: Final = b"\2"
"""Behind the seed of an installation that only reads: XIP-31's ContactRole."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A key package without its secret."""

    public: bytes = field(repr=False)
    created_ns: int
    """Nanoseconds since 1970, before the first sending."""
    is_used: bool
    """Whether a welcome was opened with it."""
    is_offered: bool
    """Whether it was published."""


def insert_installation(connection: Connection, seal: Seal, installation: Installation) -> None:
    """Store the installation of a database that has none."""
    role = _BACKUP if installation.is_backup else b""
    secret = seal.sealed(installation.secret + role, _SECRET, installation.public_key)
    row = {"public_key": installation.public_key, "credential": installation.credential}
    connection.execute(insert(schema.installation).values(id=1, secret=secret, **row))


def read_installation(connection: Connection, seal: Seal) -> Installation:
    """Return the installation. Raises StoreError where the database has none yet."""
    row = connection.execute(select(schema.installation)).mappings().one_or_none()
    if row is None:
        raise StoreError("database", "one with an installation", "none yet")
    secret = seal.opened(row["secret"], _SECRET, row["public_key"])
    seed, role = secret[:_SEED_LENGTH], secret[_SEED_LENGTH:]
    return Installation(row["credential"], row["public_key"], seed, role == _BACKUP)


def insert_key_package(
    connection: Connection, seal: Seal, key_package: KeyPackage, now_ns: int
) -> None:
    """Store a key package before it is published; ``now_ns`` in nanoseconds since 1970."""
    package_hash = keccak256(key_package.public)
    secret = seal.sealed(key_package.secret, _PACKAGE_SECRET, package_hash)
    row = {"hash": package_hash, "public": key_package.public, "created_ns": now_ns}
    connection.execute(insert(schema.key_packages).values(secret=secret, **row))


def read_key_packages(connection: Connection, seal: Seal) -> list[KeyPackage]:
    """Return the key packages, the newest first."""
    columns = schema.key_packages.c
    query = select(columns.hash, columns.public, columns.secret)
    rows = connection.execute(query.order_by(columns.created_ns.desc(), columns.hash))
    return [
        KeyPackage(public, seal.opened(secret, _PACKAGE_SECRET, package_hash))
        for package_hash, public, secret in rows
    ]


def read_newest_offer(connection: Connection) -> Offer | None:
    """Return the newest key package, None where there is none yet."""
    columns = (_PACKAGES.c[name] for name in ("public", "created_ns", "is_used", "is_offered"))
    newest = select(*columns).order_by(_PACKAGES.c.created_ns.desc(), _PACKAGES.c.hash).limit(1)
    row = connection.execute(newest).mappings().one_or_none()
    return None if row is None else Offer(**row)


def mark_offered(connection: Connection, public: bytes) -> None:
    """Write that a key package was published."""
    _mark(connection, public, is_offered=True)


def mark_used(connection: Connection, public: bytes) -> None:
    """Write that a welcome was opened with a key package."""
    _mark(connection, public, is_used=True)


def forget_key_packages(connection: Connection, before_ns: int) -> None:
    """Delete the key packages that were replaced before a time in nanoseconds since 1970."""
    replaced = select(func.max(_PACKAGES.c.created_ns)).where(_PACKAGES.c.created_ns < before_ns)
    newest_of_old = connection.scalar(replaced)
    if newest_of_old is not None:
        connection.execute(delete(_PACKAGES).where(_PACKAGES.c.created_ns < newest_of_old))


def _mark(connection: Connection, public: bytes, **values: bool) -> None:
    is_it = _PACKAGES.c.hash == keccak256(public)
    connection.execute(update(_PACKAGES).where(is_it).values(**values))
