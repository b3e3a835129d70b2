"""The database's identity: its chain, contracts and key, for all its life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from sqlalchemy import Connection, insert, select

from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import StoreError
from chainkit.protocol.payload_contract import (
    EVENT_NAMES,
    EventLayout,
    PayloadContract,
    sparse_originators,
)
from chainkit.types import TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import create_block_indexes


@dataclass(frozen=True, slots=True)
class Identity:
    """The chain, contracts and key of a database, which never change."""

    chain_id: int
    genesis_hash: bytes
    """32 bytes: hash of block 0."""
    node_public_key: bytes
    """65 bytes: the key that signs the envelopes."""
    first_block: int
    """Height below which the contracts have no log."""
    contracts: tuple[PayloadContract, ...]
    """The contracts in the order of their addresses."""

    @classmethod
    def of(cls, deployment: FollowedDeployment, node_public_key: bytes) -> Self:
        """Return the identity of a node's database for a deployment."""
        return cls(
            chain_id=deployment.chain_id,
            genesis_hash=deployment.genesis_hash,
            node_public_key=node_public_key,
            first_block=deployment.first_block,
            contracts=tuple(sorted(deployment.contracts, key=lambda each: each.address)),
        )

    @property
    def sparse_originator_ids(self) -> frozenset[int]:
        """Those whose sequence ids do not rise with the blocks."""
        return sparse_originators(self.contracts)


def read_identity(connection: Connection) -> Identity | None:
    """Return the identity of the database, or None where it has none yet."""
    row = connection.execute(select(schema.identity)).mappings().one_or_none()
    if row is None:
        return None
    query = select(schema.contracts).order_by(schema.contracts.c.address)
    contracts = tuple(_contract(found) for found in connection.execute(query).mappings())
    return Identity(
        chain_id=row["chain_id"],
        genesis_hash=row["genesis_hash"],
        node_public_key=row["node_public_key"],
        first_block=row["first_block"],
        contracts=contracts,
    )


def _contract(row: Mapping[Any, Any]) -> PayloadContract:
    layout = EventLayout(*(row[field.name] for field in fields(EventLayout)))
    return PayloadContract(
        name=row["name"],
        address=row["address"],
        block=row["block"],
        kind=TopicKind(row["kind"]),
        originator_id=row["originator_id"],
        layout=layout,
        is_sparse=row["is_sparse"],
    )


def insert_identity(connection: Connection, identity: Identity) -> None:
    """Give an identity to a database that has none."""
    columns = ("chain_id", "genesis_hash", "node_public_key", "first_block")
    values = {name: getattr(identity, name) for name in columns}
    connection.execute(insert(schema.identity).values(id=1, **values))
    for contract in identity.contracts:
        layout = {field.name: getattr(contract.layout, field.name) for field in fields(EventLayout)}
        connection.execute(
            insert(schema.contracts).values(
                name=contract.name,
                address=contract.address,
                block=contract.block,
                kind=int(contract.kind),
                originator_id=contract.originator_id,
                is_sparse=contract.is_sparse,
                **layout,
            )
        )
    if identity.sparse_originator_ids:
        create_block_indexes(connection)


def check_identity(name: str, expected: Identity, found: Identity) -> None:
    """Raise StoreError, which names the difference, where a database has another identity.

    A database that begins at a lower block than the record contains as much.
    """
    if found.first_block <= expected.first_block:
        expected, found = _without_blocks(expected), _without_blocks(found)
    for field in fields(Identity):
        wanted, got = getattr(expected, field.name), getattr(found, field.name)
        if wanted != got:
            what = field.name.replace("_", " ")
            raise StoreError(f"database {name}", f"{what} {_shown(wanted)}", _shown(got))


def _without_blocks(identity: Identity) -> Identity:
    contracts = tuple(replace(contract, block=0) for contract in identity.contracts)
    return replace(identity, first_block=0, contracts=contracts)


def _shown(value: int | bytes | tuple[PayloadContract, ...]) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple):
        return "; ".join(
            f"{contract.name} 0x{contract.address.hex()} of originator {contract.originator_id} "
            f"with {EVENT_NAMES[contract.kind]}{contract.layout}"
            f"{' and sparse sequence ids' if contract.is_sparse else ''}"
            for contract in value
        )
    return str(value)
