"""A running node looks at what another one serves to clients, and hosts its report of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from chainkit.misbehavior.report import Report, parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import (
    ServedEnvelope,
    parse_originator_envelope,
    recover_node_key,
    sign_originator_envelope,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from localnet.accounts import COUNCIL, development_account, write_keystore, write_new_keystore
from localnet.commands import Background, Settings, run_json
from localnet.network import Network, start_service
from support import mls, publishes
from support.network.api import Api
from support.network.grpc_proxy import lying_node

from .conftest import PASSWORD

SECONDS = 60.0
GROUP = b"\x77" * 16
LIAR = SigningKey(b"\x77" * 32)


def publish_commits(network: Network, count: int) -> None:
    """Have the chain hold a few payloads."""
    gateway = Api(network.gateway_url)
    for epoch in range(1, count + 1):
        message = mls.private_message(GROUP, mls.COMMIT, epoch)
        gateway.publish_for_clients(publishes.group_message(message, GROUP))
    gateway.close()


def of_another_chain(served: ServedEnvelope) -> bytes:
    """The same payload at another time, signed by the liar."""
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(
        served.unsigned_originator_envelope
    )
    unsigned.originator_ns += 1
    return sign_originator_envelope(unsigned.SerializeToString(), served.transaction_hash, LIAR)


def register(settings: Settings, folder: Path, url: str) -> int:
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    added = run_json(
        settings,
        *("registry", "add", "--public-key", f"0x{LIAR.public_key.hex()}"),
        *("--http-address", url, "--no-check-url"),
        *("--holder", development_account(COUNCIL).address),
        *("--broadcast", "--keystore", owner),
    )
    return int(added["node_id"])


@contextmanager
def watching_node(settings: Settings, folder: Path) -> Iterator[Api]:
    """A node that the registry need not list, and that looks at the others all the time."""
    keystore = folder / "node.keystore"
    write_new_keystore(keystore, settings.password)
    service = Background(
        settings,
        folder / "node.log",
        *("node", "run", "--keystore", keystore, "--database", folder / "node.db"),
        *("--grpc", "127.0.0.1:0", "--finality", "1", "--watch-seconds", "0.5"),
        *("--stale-seconds", "0", "--log-format", "json"),
    )
    with ExitStack() as stack:
        port = start_service(stack, service, "node_listening")
        api = Api(f"http://127.0.0.1:{port}", is_own_connection=True)
        stack.callback(api.close)
        yield api


def until_reported(api: Api, is_it: Callable[[Report], bool]) -> list[Report]:
    """Read reports until there is the one that is waited for; return all."""
    found: list[Report] = []
    after, deadline = 0, time.monotonic() + SECONDS
    while not any(map(is_it, found)):
        assert time.monotonic() < deadline
        page = api.query_reports(after)
        after = page[-1].server_time_ns if page else after
        found += [parse_unsigned(each.unsigned_misbehavior_report) for each in page]
    return found


@pytest.mark.conforms("N50")
def test_watchdog__a_node_serves_another_chains_payload__its_envelope_is_reported(
    settings: Settings, network: Network, tmp_path: Path
) -> None:
    publish_commits(network, 3)
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    with lying_node(network.node_url, changed=of_another_chain) as url:
        liar_id = register(settings, tmp_path, url)
        with watching_node(settings, tmp_path) as api:
            reports = until_reported(api, lambda each: each.misbehavior is kind)

    about_chain = [each for each in reports if each.misbehavior is kind]
    assert {(each.node_id, each.is_from_node) for each in about_chain} == {(liar_id, True)}
    for each in about_chain:
        [evidence] = each.envelopes
        assert recover_node_key(parse_originator_envelope(evidence)) == LIAR.public_key
    assert not [
        each
        for each in reports
        if each.node_id == network.node_id and not each.misbehavior.is_liveness
    ]
