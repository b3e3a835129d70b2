"""The WebSocket half of the fault proxy: passes a subscription on, or breaks it in a known way."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.server import ServerProtocol
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection

_GARBAGE = ('{"jsonrpc": "2.0", "method"', "\x00", "[]", "null", "7", b"\xff\xfe", "{}")
_SILENT = logging.getLogger("support.endpoints.web_socket_relay")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class WebSocketFault(Enum):
    MUTE = "subscribes, then never says anything"
    DEAD = "answers nothing at all, not even the subscription"
    CLOSES = "closes after the subscription"
    CUTS = "loses the connection at the first new head"
    GARBAGE = "sends what is no JSON-RPC, beside the truth"
    EMPTY_HEADS = "sends notifications without a head"
    REFUSES = "does not speak WebSocket"


class WebSocketRelay:
    """Relays between a client and the chain's own WebSocket; ``fault`` may be set at any time."""

    def __init__(self, upstream: Callable[[], str]) -> None:
        self.fault: WebSocketFault | None = None
        self.delivered: Counter[WebSocketFault] = Counter()
        self.subscriptions = 0
        self._upstream = upstream
        self._open: set[ServerConnection | ClientConnection] = set()

    def serve(self, raw: socket.socket) -> None:
        """Speak to one client until either side has gone."""
        if self.fault is WebSocketFault.REFUSES:
            self._count()
            raw.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        client = ServerConnection(raw, ServerProtocol(logger=_SILENT), close_timeout=0.2)
        client.handshake(timeout=5)
        with connect(self._upstream(), close_timeout=0.2, logger=_SILENT) as chain:
            self._open |= {client, chain}
            backward = threading.Thread(target=self._backward, args=(chain, client), daemon=True)
            backward.start()
            try:
                self._forward(client, chain)
            except ConnectionClosed:
                pass
            finally:
                self._open -= {client, chain}
                chain.close()
                backward.join()
                client.close()

    def close(self) -> None:
        """End all conversations."""
        for connection in list(self._open):
            connection.close_socket()

    def _forward(self, client: ServerConnection, chain: ClientConnection) -> None:
        for message in client:
            self.subscriptions += "eth_subscribe" in str(message)
            chain.send(message)

    def _backward(self, chain: ClientConnection, client: ServerConnection) -> None:
        try:
            for message in chain:
                for sent in self._relayed(client, json.loads(message)):
                    client.send(sent)
        except ConnectionClosed:
            client.close()

    def _relayed(self, client: ServerConnection, message: Any) -> Iterator[str | bytes]:
        is_head = message.get("method") == "eth_subscription"
        fault = self.fault
        if fault is WebSocketFault.DEAD or (is_head and fault is WebSocketFault.MUTE):
            self._count()
        elif fault is WebSocketFault.CLOSES or (is_head and fault is WebSocketFault.CUTS):
            self._count()
            client.close() if fault is WebSocketFault.CLOSES else client.close_socket()
        elif is_head and fault is WebSocketFault.EMPTY_HEADS:
            self._count()
            for value in (None, {}, [], {"number": "latest"}):
                params = message["params"] | {"result": value}
                yield json.dumps(message | {"params": params})
        else:
            if fault is WebSocketFault.GARBAGE:
                self._count()
                yield from _GARBAGE
            yield json.dumps(message)

    def _count(self) -> None:
        if self.fault:
            self.delivered[self.fault] += 1
