"""A node and a gateway on a private chain, so that real clients can talk to each other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.signatures import SigningKey, keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import TopicKind
from localnet.accounts import COUNCIL, development_account, write_keystore, write_new_keystore
from localnet.commands import Background, CommandFailed, Settings, run_json

GATEWAY_ACCOUNT: Final = 7
"""Number of the development account that pays."""

GATEWAY_LISTENS: Final = "gateway_listening"
"""Event of a gateway's log, with its port."""

_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Network:
    """Where clients and readers connect."""

    node_id: int
    node_url: str
    gateway_url: str
    """The gateway's address; today's clients take it as ``gatewayHost``."""


@dataclass(frozen=True, slots=True)
class StartedNode:
    """A node that the registry lists."""

    node_id: int
    url: str
    service: Background = field(repr=False)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.service.pid


@contextmanager
def running_network(
    settings: Settings, folder: Path, owner: Path, password: str, *gateway_options: str
) -> Iterator[Network]:
    """Run a node that the registry lists, and a gateway; both end with the block.

    ``owner`` is the keystore of the registry's owner. Everything of an earlier run is removed from
    the folder, because its chain is another one.
    """
    for name in ("node.keystore", "node.db", "gateway.db"):
        for path in folder.glob(f"{name}*"):
            path.unlink()
    with ExitStack() as stack:
        node = start_node(stack, settings, folder, owner, folder / "node.db")
        gateway_url = start_gateway(stack, settings, folder, password, *gateway_options)
        yield Network(node.node_id, node.url, gateway_url)


def start_gateway(
    stack: ExitStack,
    settings: Settings,
    folder: Path,
    password: str,
    *options: str,
    account: int = GATEWAY_ACCOUNT,
) -> str:
    """Start a gateway whose payer is a development account, and return its URL."""
    gateway = gateway_command(settings, folder, password, *options, account=account)
    return f"http://127.0.0.1:{start_service(stack, gateway, GATEWAY_LISTENS)}"


def gateway_command(
    settings: Settings,
    folder: Path,
    password: str,
    *options: str,
    account: int = GATEWAY_ACCOUNT,
) -> Background:
    """Return the command of a gateway whose payer is a development account."""
    payer = folder / "gateway.keystore"
    write_keystore(payer, password, account)
    return Background(
        settings,
        folder / "gateway.log",
        *("gateway", "run", "--keystore", payer, "--journal", folder / "gateway.db"),
        *("--grpc", "127.0.0.1:0", "--log-format", "json"),
        *options,
    )


def start_node(
    stack: ExitStack,
    settings: Settings,
    folder: Path,
    owner: Path,
    database: str | Path,
    *options: str,
) -> StartedNode:
    """Start a node with a new key, and have the registry list it."""
    keystore = folder / "node.keystore"
    key = write_new_keystore(keystore, settings.password)
    node = Background(
        settings,
        folder / "node.log",
        *("node", "run", "--keystore", keystore, "--database", database),
        *("--grpc", "127.0.0.1:0", "--stale-seconds", "0", "--log-format", "json"),
        *options,
    )
    port = start_service(stack, node, "node_listening")
    url = f"http://127.0.0.1:{port}"
    added = run_json(
        settings,
        *("registry", "add", "--public-key", hex0x(key.public_key)),
        *("--http-address", url),
        *("--holder", development_account(COUNCIL).address, "--no-check-url"),
        *("--broadcast", "--keystore", owner),
    )
    # The node sees its entry when it has followed the registry, and then asks the other nodes for
    # its own log; until then the node originates nothing.
    wait_for_entry(node, lambda entry: entry.get("event") == "own_log_known")
    return StartedNode(int(added["node_id"]), url, node)


def welcome(installation_key: bytes, seen: Mapping[int, int] | None = None) -> bytes:
    """Return a ClientEnvelope with a welcome for an installation (32 bytes), as clients write it.

    ``seen`` is the writer's cursor: originator ids to sequence ids.
    """
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.WELCOME.topic(installation_key)
    envelope.aad.last_seen.node_id_to_sequence_id.update(seen or {})
    envelope.welcome_message.v1.installation_key = installation_key
    envelope.welcome_message.v1.data = b"welcome"
    return envelope.SerializeToString()


def publish_welcome(url: str, node_id: int, installation_key: bytes) -> bytes:
    """Publish a welcome on a node, paid by a payer of its own; return the envelope."""
    payer = SigningKey(keccak256(installation_key))
    paid = sign_payer_envelope(welcome(installation_key), node_id, payer)
    request = Envelopes(envelopes=[paid]).SerializeToString()
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        publish: Any = channel.unary_unary(PUBLISH_PAYER_ENVELOPES)
        answer: bytes = publish(request, timeout=_START_SECONDS)
    [envelope] = Envelopes.FromString(answer).envelopes
    return envelope


def start_service(stack: ExitStack, service: Background, event: str) -> int:
    """Start a service, wait until its log has the event, and return the port in the event."""
    stack.callback(service.stop)
    service.start()
    return int(wait_for_entry(service, lambda entry: entry.get("event") == event)["port"])


def wait_for_entry(service: Background, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until a service has logged an entry, and return that."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for entry in map(_entry, service.log_lines()):
            if is_it(entry):
                return entry
        service.check()
        time.sleep(_POLL_SECONDS)
    raise CommandFailed("start", f"to be logged within {_START_SECONDS:g} s", "nothing")


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        # Half written, or not of our log.
        return {}
    return entry if isinstance(entry, dict) else {}
