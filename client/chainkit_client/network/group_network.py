"""The network as intents use it: key packages, publishes through the gateway, and look-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import grpc

from chainkit.nodes.outcomes import Conflict, NodeUnreached, Unavailable
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.refusals import PassedOn
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import OutgoingWelcome
from chainkit_client.groups.publishing import Answer, PublishOutcome
from chainkit_client.mls.engine import Member, MlsEngine
from chainkit_client.network.inboxes import is_genuine
from chainkit_client.network.key_packages import valid_offers
from chainkit_client.network.payloads import welcome_payload
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.network.revocations import Revocations
from chainkit_client.network.session import NetworkSession
from chainkit_client.topics.following import Topic

LOST_SECONDS: Final = 60
"""A message that no node has so long after sending counts as lost."""

_NOTHING_STORED: Final = frozenset(
    {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAUTHENTICATED}
)


class GroupNetwork:
    """The ``groups.publishing.Network`` for the groups of one client."""

    def __init__(
        self,
        session: NetworkSession,
        engine: MlsEngine,
        topic_of: Callable[[bytes], Topic],
        retention_days: int | None = None,
    ) -> None:
        """Take the session, a check of key packages, and each group's topic as it was read.

        ``retention_days`` is the wish for texts; None for the gateway's policy.
        """
        self._session = session
        self._engine = engine
        self._topic_of = topic_of
        self._retention_days = retention_days
        self._revocations = Revocations(session)
        self.unreached: NodeUnreached | None = None
        """The error where the last payload was not sent without a connection to the gateway."""

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        """Return an AuthenticatedData with the applied ids of the group's topic (C11)."""
        data = envelopes_pb2.AuthenticatedData(target_topic=TopicKind.GROUP_MESSAGE.topic(group_id))
        seen = self._topic_of(group_id).last_seen.sequence_ids
        data.last_seen.node_id_to_sequence_id.update(seen)
        return data.SerializeToString()

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the newest valid key package of each installation that offers one.

        A key package whose credential names another inbox than the installation's is not valid. The
        newest one is that of the latest begin of its lifetime, which its installation signed:
        anybody may publish an older one again. An installation that was a backup stays one: whoever
        stole its file may offer a key package without the role.
        """
        found: dict[bytes, bytes] = {}
        for installation in installations:
            valid = await valid_offers(self._session, self._engine, installation)
            is_backup = any(member.is_backup for _, member in valid)
            for offer, member in valid:
                if member.is_backup == is_backup and await is_genuine(self._session, member):
                    found[installation] = offer
                    break
        return found

    async def revoked(self, members: Sequence[Member]) -> frozenset[bytes]:
        """Return the members that their own inboxes revoked, of some inboxes; see Revocations."""
        return await self._revocations.of(members)

    async def publish(self, outgoing: Outgoing) -> Answer:
        """Send a payload through the gateway."""
        days = None if outgoing.is_commit else self._retention_days
        return await self._publish(outgoing.client_envelope, outgoing.built_at_ns, days)

    async def is_absent(self, outgoing: Outgoing) -> bool:
        """Return whether a payload is lost for good. The topic was just read, without the payload.

        A commit may be in a transaction that is not mined yet: the commit is lost once the chain is
        final beyond the time of sending. A message that comes late is a copy, which all readers
        know by the content.
        """
        if outgoing.sent_at_ns is None:
            return True
        lost_ns = outgoing.sent_at_ns + LOST_SECONDS * NANOSECONDS_PER_SECOND
        if not outgoing.is_commit:
            return self._session.now_ns() >= lost_ns
        final = await asyncio.to_thread(self._session.chain.final)
        return final is not None and final.timestamp * NANOSECONDS_PER_SECOND > lost_ns

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        """Send a welcome to its installation's topic."""
        payload = welcome_payload(welcome.installation, welcome.data)
        answer = await self._publish(payload, welcome.built_at_ns)
        return answer.outcome is PublishOutcome.TAKEN

    async def _publish(
        self, client_envelope: bytes, first_sent_ns: int, retention_days: int | None = None
    ) -> Answer:
        self.unreached = None
        try:
            await self._session.publisher.publish(client_envelope, first_sent_ns, retention_days)
        except Conflict as error:
            return Answer(PublishOutcome.CONFLICT, str(error))
        except Unavailable as error:
            # A gateway that answers so may have sent the payload before.
            return Answer(PublishOutcome.UNKNOWN, str(error))
        except PassedOn as error:
            nothing = error.code in _NOTHING_STORED
            return Answer(
                PublishOutcome.NOT_TAKEN if nothing else PublishOutcome.REFUSED, str(error)
            )
        except NodeUnreached as error:
            self.unreached = error
            return Answer(PublishOutcome.NOT_TAKEN, str(error))
        except OutcomeUnknown as error:
            return Answer(PublishOutcome.UNKNOWN, str(error))
        return Answer(PublishOutcome.TAKEN)
