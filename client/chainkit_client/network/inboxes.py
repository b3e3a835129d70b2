"""Inboxes on the chain: wallets and installations, without trust in a node (XIP-46).

An update that is left out revokes nothing. So all nodes are asked for an inbox's updates, and the
chain itself for those that all nodes leave out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.errors import ChainkitError, MalformedData, RefusedUpdate
from chainkit.identity.identifiers import MemberKind, parse_inbox_id, wallet
from chainkit.identity.state import Accepted, AssociationState
from chainkit.identity.update import update_in
from chainkit.identity.validation import validate
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.service.refusals import PassedOn
from chainkit.types import Place, TopicKind
from chainkit_client.mls.engine import Member
from chainkit_client.network.asked import ASK_SECONDS
from chainkit_client.network.chain_status import ChainStatus
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.topics.following import Topic

MOST_LOOKUPS: Final = 100
"""Updates that one node serves and that are looked up in one reading of an inbox."""


class NoSuchInbox(ChainkitError):
    """No inbox on the chain has this id or address."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """The current members of an inbox."""

    id: bytes
    """32 bytes."""
    wallets: tuple[str, ...]
    """Addresses in lower case."""
    installations: tuple[bytes, ...]
    """32 bytes each, in the order of their keys."""
    revoked: frozenset[bytes] = frozenset()
    """32 bytes each: installations that were in the inbox, and are not any more."""


def accepted_updates(
    inbox_id: bytes, updates: Mapping[Place, bytes]
) -> Iterator[tuple[Place, Accepted]]:
    """Yield the updates of an inbox that break no rule, in the chain's order, by place.

    Updates are ClientEnvelopes. Signatures of contract wallets are not checked: an update with
    such a signature counts as refused here.
    """
    state: AssociationState | None = None
    for place in sorted(updates):
        try:
            accepted = validate(state, inbox_id, update_in(updates[place]))
        except (RefusedUpdate, MalformedData):
            continue
        state = accepted.state
        yield place, accepted


def read_inbox(inbox_id: bytes, updates: Mapping[Place, bytes]) -> Inbox | None:
    """Return an inbox after ClientEnvelopes with its updates, by place; None before the first."""
    state: AssociationState | None = None
    revoked = set[bytes]()
    for _, accepted in accepted_updates(inbox_id, updates):
        state = accepted.state
        revoked |= {each.value for each in accepted.changes.uninstalled}
    if state is None:
        return None
    of_kind: dict[MemberKind, list[bytes]] = {kind: [] for kind in MemberKind}
    for member in state.members:
        of_kind[member.kind].append(member.value)
    addresses = sorted(f"0x{each.hex()}" for each in of_kind[MemberKind.ETHEREUM])
    installations = tuple(sorted(of_kind[MemberKind.INSTALLATION]))
    return Inbox(inbox_id, tuple(addresses), installations, frozenset(revoked - set(installations)))


async def find_inbox(session: NetworkSession, name: str) -> Inbox:
    """Return an inbox by its id in hex, or by an address.

    Nodes answer the inbox of an address; the answer counts if the inbox's updates confirm the
    address. Raises MalformedData for another form, NoSuchInbox, and NodesSilent.
    """
    if name.startswith("0x"):
        address = name.lower()
        wallet(address)
        for inbox_id in await _inbox_ids(session, address):
            inbox = await inbox_of(session, inbox_id)
            if inbox is not None and address in inbox.wallets:
                return inbox
        raise NoSuchInbox("address", "one that is in an inbox", name)
    found = await inbox_of(session, parse_inbox_id(name))
    if found is None:
        raise NoSuchInbox("inbox", "one that was created", name)
    return found


async def inbox_of(session: NetworkSession, inbox_id: bytes) -> Inbox | None:
    """Return an inbox by its id of 32 bytes, None where the chain has no such inbox."""
    return read_inbox(inbox_id, await updates_of(session, inbox_id))


async def updates_of(session: NetworkSession, inbox_id: bytes) -> Mapping[Place, bytes]:
    """Return the updates of an inbox as the chain has them: ClientEnvelopes, by place.

    Raises NodesSilent, ChainError, and StoreError.
    """
    topic = Topic(TopicKind.IDENTITY_UPDATE.topic(inbox_id))
    found = await session.read(session.reader(topic, at_once=len(session.nodes)))
    posted = await asyncio.to_thread(session.posted.of, inbox_id)
    updates, unknown = dict(posted), list[VerifiedEnvelope]()
    lookups: Counter[int | None] = Counter()
    # An envelope that waits counts as well: a made-up one must not hold up a true one.
    for each in (*found.accepted, *(conflict.served for conflict in found.conflicts)):
        payload, server_id = each.client.client_envelope, session.server_of(each.envelope)
        if updates.get(each.place) == payload or lookups[server_id] == MOST_LOOKUPS:
            continue
        lookups[server_id] += 1
        status = (await session.find(each)).status
        if status is ChainStatus.CONFIRMED:
            updates[each.place] = payload
        elif status is ChainStatus.ABSENT:
            unknown.append(each)
    session.keep_unknown(unknown)
    return updates


async def is_genuine(session: NetworkSession, member: Member) -> bool:
    """Return whether a member is an installation of the inbox that its credential names.

    A member writes its own credential. The inbox's updates on the chain list its installations.
    """
    try:
        inbox_id = parse_inbox_id(member.credential.decode())
    except (MalformedData, UnicodeDecodeError):
        return False
    inbox = await inbox_of(session, inbox_id)
    return inbox is not None and member.public_key in inbox.installations


async def _inbox_ids(session: NetworkSession, address: str) -> list[bytes]:
    """Return all inboxes that some node names for an address. Raises NodesSilent."""
    found: dict[bytes, None] = {}
    silent: list[str] = []
    for node in session.nodes:
        try:
            answer = await node.inbox_id(address, ASK_SECONDS)
            if answer is not None:
                found[parse_inbox_id(answer)] = None
        except (MalformedData, NodeLost, NodeUnreached, PassedOn) as error:
            silent.append(str(error))
    if len(silent) == len(session.nodes):
        raise NodesSilent("address", "an answer of a node", "; ".join(silent) or "no node")
    return list(found)
