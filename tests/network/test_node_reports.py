"""Reports of misbehavior that a running node takes, keeps over a restart, and bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from chainkit.misbehavior.report import parse_unsigned
from chainkit.protocol.proto.message_api_pb2 import MisbehaviorReport
from chainkit.protocol.reports import reporter_of
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from localnet.accounts import COUNCIL, development_account, write_keystore, write_new_keystore
from localnet.commands import Background, Settings, run_json
from localnet.network import Network, start_service
from support import publishes
from support.network.api import Api
from support.reporting import KEYS, OWN, proof, slow

from .conftest import PASSWORD

CLIENT_CLAIMS = ReportBounds().shares["client", "claimed"].rows
PER_MINUTE = ReportRate().per_minute


@dataclass(frozen=True)
class Node:
    """A node's key and database, which outlive its process; the registry need not list it."""

    settings: Settings
    folder: Path
    public_key: bytes
    accused_id: int

    @contextmanager
    def running(self, *options: str) -> Iterator[Api]:
        service = Background(
            self.settings,
            self.folder / "node.log",
            *("node", "run", "--keystore", self.folder / "node.keystore"),
            *("--database", self.folder / "node.db", "--grpc", "127.0.0.1:0"),
            *("--stale-seconds", "0", "--log-format", "json", *options),
        )
        with ExitStack() as stack:
            port = start_service(stack, service, "node_listening")
            api = Api(f"http://127.0.0.1:{port}", is_own_connection=True)
            stack.callback(api.close)
            yield api


@pytest.fixture(scope="module")
def node(settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory) -> Node:
    # After the network's own node, whose id other tests know.
    assert network.node_id == publishes.NODE_ID
    folder = tmp_path_factory.mktemp("reports")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    added = run_json(
        settings,
        *("registry", "add", "--public-key", f"0x{KEYS[OWN].public_key.hex()}"),
        *("--http-address", "http://127.0.0.1:9", "--no-check-url"),
        *("--holder", development_account(COUNCIL).address),
        *("--broadcast", "--keystore", owner),
    )
    key = write_new_keystore(folder / "node.keystore", settings.password)
    return Node(settings, folder, key.public_key, int(added["node_id"]))


def until_accepted(submit: Callable[[], None]) -> None:
    """Submit until the node has followed the registry to the accused."""
    words = ("misbehaving_node_id", "registry")
    while True:
        try:
            return submit()
        except grpc.RpcError as error:
            assert any(word in str(error.details()) for word in words)
            time.sleep(0.05)


def everything(api: Api) -> list[MisbehaviorReport]:
    found: list[MisbehaviorReport] = []
    while page := api.query_reports(found[-1].server_time_ns if found else 0):
        assert page[0].server_time_ns > (found[-1].server_time_ns if found else 0)
        found += page
    return found


def of_clients(api: Api) -> list[MisbehaviorReport]:
    """Reports but those of the node itself, which may find the accused node unreachable."""
    return [
        each
        for each in everything(api)
        if not parse_unsigned(each.unsigned_misbehavior_report).is_from_node
    ]


@pytest.mark.conforms("N51", "N52", "N54")
def test_reports__over_a_restart_and_in_a_flood__are_kept_signed_and_bounded(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    accused = node.accused_id
    monkeypatch.setitem(KEYS, accused, KEYS[OWN])
    with node.running("--reports-per-minute", "0") as api:
        until_accepted(lambda: api.submit_report(proof(5, accused)))
        api.submit_report(proof(5, accused, time=7))
        for number in range(CLIENT_CLAIMS + 20):
            api.submit_report(slow(number, accused))
        with pytest.raises(grpc.RpcError) as caught:
            api.submit_report(proof(5, accused).replace(b"earlier", b"EARLIER"))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        stored = of_clients(api)

    with node.running() as api:
        assert of_clients(api) == stored
        until_accepted(lambda: api.submit_report(slow(0, accused)))
        with pytest.raises(grpc.RpcError) as caught:
            for number in range(PER_MINUTE * 10):
                api.submit_report(slow(number, accused))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(of_clients(api)) == len(stored)

    assert len(stored) == 1 + CLIENT_CLAIMS
    assert stored[0].unsigned_misbehavior_report == proof(5, accused)
    for each in stored:
        unsigned = each.unsigned_misbehavior_report
        assert reporter_of(each.SerializeToString(), unsigned) == node.public_key
        report = parse_unsigned(unsigned)
        assert (report.node_id, report.is_from_node) == (accused, False)
