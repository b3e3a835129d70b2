"""Distinguishes nodes, which show a token (XIP-49 §3.2.5), from strangers, who show none.

A node with a refused token is no stranger: the node would go on with a stranger's limits, and never
learn why. The request is refused with the reason instead, and counts for the caller's address.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from chainkit.service.grpc_methods import Caller
from chainkit.service.node_token import (
    NODE_TOKEN_KEY,
    TOKEN_KEY,
    RefusedToken,
    SignedToken,
    TokenFault,
    read_token,
    token_in,
)
from chainkit.service.refusals import NotReady
from chainkit_node.peers.directory import Listing
from chainkit_node.serving.limiter import CallerLimiter

_MOST_TOKENS: Final = 1000
"""Remembered tokens; a node renews its token."""

_KEYS: Final = frozenset({NODE_TOKEN_KEY, TOKEN_KEY})


@dataclass(frozen=True, slots=True)
class Admitted:
    """The other end of one request."""

    limiter: CallerLimiter
    name: str
    """An address, or the id of a node."""
    check: Callable[[], None] = lambda: None
    """Raises RefusedToken once the registry does not list a node as enabled any more."""


@dataclass(frozen=True, slots=True)
class Peers:
    """How other nodes are known."""

    listing: Callable[[], Listing]
    """Returns the newest listing that is known, at once."""
    now: Callable[[], float]
    """Returns the time of day: seconds since 1970."""
    refused: Callable[[TokenFault], None]
    """Gets the fault of each refused token."""
    own: Callable[[str, int], None] = lambda text, issued_at: None
    """Gets each valid token of this node itself, with the seconds since 1970 when it was issued."""


class Callers:
    """Distinguishes nodes from strangers; used on the event loop's thread."""

    def __init__(self, peers: Peers, nodes: CallerLimiter, strangers: CallerLimiter) -> None:
        """Take how nodes are known, and the limiter of each class."""
        self._peers = peers
        self._nodes = nodes
        self._strangers = strangers
        self._tokens: OrderedDict[str, SignedToken] = OrderedDict()

    def admit(self, caller: Caller) -> Admitted:
        """Return who calls, and count the request.

        Raises RefusedToken, Overloaded, and NotReady while the registry's nodes are not known.
        """
        tokens = _tokens(caller.metadata)
        if not tokens:
            return self._admitted(Admitted(self._strangers, caller.address))
        try:
            node = self._node(tokens, caller.address)
        except (RefusedToken, NotReady) as error:
            # Only requests with a bad token count here: a node shares its address with strangers.
            if isinstance(error, RefusedToken):
                self._strangers.refused_token(caller.address)
            self._strangers.admit(caller.address)
            if isinstance(error, RefusedToken):
                self._peers.refused(error.fault)
            raise
        return self._admitted(node)

    def _admitted(self, caller: Admitted) -> Admitted:
        caller.limiter.admit(caller.name)
        return caller

    def _node(self, tokens: set[str], address: str) -> Admitted:
        if len(tokens) > 1:
            raise RefusedToken("token", "one", len(tokens))
        [text] = tokens
        listing = self._peers.listing()
        if listing.block is None:
            raise NotReady("registry", "its nodes at a block", "none: it was not followed yet")
        token = self._tokens.get(text)
        if token is None:
            # To recover a key takes longer than all else that a refusal costs.
            self._strangers.check_tokens(address)
            token = read_token(text)
        token.check_issued(listing.own_id, self._peers.now())
        token.check_registered(listing.nodes)
        self._remember(text, token)
        if token.subject == listing.own_id:
            self._peers.own(text, token.issued_at)
        return Admitted(
            self._nodes,
            str(token.subject),
            lambda: token.check_registered(self._peers.listing().nodes),
        )

    def _remember(self, text: str, token: SignedToken) -> None:
        # Only valid tokens are kept: strangers cannot push these out.
        self._tokens[text] = token
        self._tokens.move_to_end(text)
        while len(self._tokens) > _MOST_TOKENS:
            self._tokens.popitem(last=False)


def _tokens(metadata: Iterable[tuple[str, Any]]) -> set[str]:
    """Return the tokens of a request; an empty value is none, as for today's nodes."""
    return {token_in(str(value)) for key, value in metadata if key in _KEYS and value}
