"""Grants of uploads to a storage service, for an application's clients (XIP-31).

A client asks the gateway that it uses anyway, and gets a URL that takes one file, once. Gateway and
storage service share a key and never talk; the grant does not say whose it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from chainkit.protocol.proto.gateway_api_pb2 import GrantUploadResponse
from chainkit.service.allowance import Buckets
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import Overloaded
from chainkit.service.upload_grant import ID_LENGTH, Grant, upload_url
from chainkit_gateway.clients import Clients

GRANT_SECONDS: Final = 86_400
"""How long an upload may wait: a person's other device may be off."""

_PER_SECOND: Final = 1 / 60
_BURST: Final = 10
"""Grants of a client at once; then one a minute. A grant may cost gigabytes of somebody's disk."""


class UploadGrants:
    """The handler of BackupApi; used on the event loop's thread."""

    def __init__(
        self,
        key: bytes,
        base_url: str,
        clients: Clients,
        clock: Callable[[], float],
        growing: Callable[[], float],
    ) -> None:
        """Take the service's key and URL, the clients, and two clocks in seconds.

        ``clock`` counts from 1970, ``growing`` only grows.
        """
        self._key = key
        self._base_url = base_url
        self._clients = clients
        self._clock = clock
        self._growing = growing
        self._grants = Buckets(_PER_SECOND, _BURST)

    async def grant_upload(self, data: bytes, caller: Caller) -> bytes:
        """Answer with an upload URL. Raises Unauthenticated and Overloaded."""
        name = self._clients.name(caller)
        self._clients.take(name, 1, len(data))
        now = self._growing()
        if (seconds := self._grants.seconds_to_wait(name, now)) > 0:
            expected = f"at most {_BURST} at once, then one a minute"
            raise Overloaded(f"uploads of {name}", expected, "more", f"again in {seconds:.1f} s")
        self._grants.take(name, now)
        grant = Grant(secrets.token_bytes(ID_LENGTH), int(self._clock()) + GRANT_SECONDS)
        url = upload_url(self._base_url, self._key, grant)
        answer = GrantUploadResponse(upload_url=url, expires_at=grant.expires_at)
        return answer.SerializeToString()
