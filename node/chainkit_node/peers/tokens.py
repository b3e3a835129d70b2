"""Tokens that show this node to its peers (XIP-49 §3.2.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from chainkit.service.node_token import MOST_AGE_SECONDS, NODE_TOKEN_KEY, TOKEN_KEY, write_token
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey

RENEW_SECONDS: Final = MOST_AGE_SECONDS // 2
"""A peer whose clock is ahead by as much as half an hour still takes the oldest."""


class PeerTokens:
    """One token for each peer, renewed in time; used on the event loop's thread."""

    def __init__(
        self,
        own_id: Callable[[], int | None],
        key: SigningKey,
        now: Callable[[], float],
        wrote: Callable[[str], None] = lambda token: None,
    ) -> None:
        """Take a function of this node's id while it is enabled, its key, and the time of day.

        The time is in seconds since 1970; ``wrote`` gets each token before it is used.
        """
        self._own_id = own_id
        self._key = key
        self._now = now
        self._wrote = wrote
        self._tokens: dict[int, tuple[int, int, str]] = {}

    def token(self, peer_id: int) -> str:
        """Return a token for a peer, at most half an hour old.

        Raises NotReady while this node is not registered.
        """
        own_id, now = self._own_id(), int(self._now())
        if own_id is None:
            raise NotReady("token", "a node that is registered", "this one, which is not")
        signer, issued_at, token = self._tokens.get(peer_id, (0, 0, ""))
        # A clock that was set back would leave a token from the future.
        if signer != own_id or not 0 <= now - issued_at < RENEW_SECONDS:
            token = write_token(self._key, own_id, peer_id, now, now + MOST_AGE_SECONDS)
            self._wrote(token)
            self._tokens[peer_id] = own_id, now, token
        return token

    def metadata(self, peer_id: int) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a call to a peer, as XIP-49 has it and as today's nodes have it.

        None while this node is not registered, or disabled: then it asks as any stranger.
        """
        if self._own_id() is None:
            return ()
        token = self.token(peer_id)
        return (NODE_TOKEN_KEY, token), (TOKEN_KEY, f"Bearer {token}")
