"""The welcomes to one installation: read, and taken each for itself."""

from __future__ import annotations

import asyncio

from chainkit_client.groups.groups import Groups
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.network.payloads import received_welcome
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.topics.following import Topic


class OwnWelcomes:
    """The topic of welcomes of one installation; for one event loop."""

    def __init__(self, session: NetworkSession) -> None:
        """Take the session."""
        self._session = session
        self._reader: TopicReader | None = None
        self._untaken: list[WelcomePayload] = []
        """Welcomes at which the engine did not answer: they are tried again."""

    async def take(self, groups: Groups) -> EngineFailed | None:
        """Take new welcomes, each for itself; return the failure of one that waits, if one does."""
        if self._reader is None:
            self._reader = self._session.reader(Topic(groups.welcome_topic))
        found = await self._session.read(self._reader)
        # A node that signs two welcomes under one id must not hide the true one by the other.
        for envelope in (*(each.envelope for each in found.applied), *found.second):
            data = received_welcome(envelope.client.client_envelope)
            self._untaken.append(WelcomePayload(*envelope.place, envelope.originator_ns, data))
        failure = None
        untaken, self._untaken = self._untaken, []
        for payload in untaken:
            try:
                await asyncio.to_thread(groups.take_welcome, payload)
            except EngineFailed as error:
                self._untaken.append(payload)
                failure = error
        return failure
