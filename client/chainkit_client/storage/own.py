"""The installation's keys, and its key packages: the offers to be added to a group."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, insert, select

from chainkit.errors import StoreError
from chainkit.signatures import keccak256
from chainkit_client.mls.engine import Installation, KeyPackage
from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal

_SECRET: Final = "installation.secret"
_PACKAGE_SECRET: Final = "key_packages.secret"


def insert_installation(connection: Connection, seal: Seal, installation: Installation) -> None:
    """Store the installation of a database that has none."""
    secret = seal.sealed(installation.secret, _SECRET, installation.public_key)
    row = {"public_key": installation.public_key, "credential": installation.credential}
    connection.execute(insert(schema.installation).values(id=1, secret=secret, **row))


def read_installation(connection: Connection, seal: Seal) -> Installation:
    """Return the installation. Raises StoreError where the database has none yet."""
    row = connection.execute(select(schema.installation)).mappings().one_or_none()
    if row is None:
        raise StoreError("database", "one with an installation", "none yet")
    secret = seal.opened(row["secret"], _SECRET, row["public_key"])
    return Installation(row["credential"], row["public_key"], secret)


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
