"""``node run`` as an operator starts it for strangers: with TLS, limits and a monitor."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from grpc_health.v1 import health_pb2
from prometheus_client.parser import text_string_to_metric_families

from chainkit.protocol.proto.message_api_pb2 import QueryEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.certificate import CertificateFiles
from localnet.accounts import write_new_keystore
from localnet.commands import Background, CommandFailed, Settings, run
from support import publishes
from support.network.api import REPLICATION, query
from support.network.certificates import make_pair, write_pair

SECONDS = 30.0
BURST = 8
"""Requests of one address, more than the tests before the last one send."""


@dataclass(frozen=True, slots=True)
class Operated:
    """A node that the registry does not list."""

    port: int
    monitor: str
    channel: grpc.Channel
    service: Background

    def call(self, method: str, request: bytes, service: str = REPLICATION) -> bytes:
        path = f"/{service}/{method}"
        answer: bytes = self.channel.unary_unary(path)(request, timeout=SECONDS)
        return answer

    def samples(self) -> dict[tuple[str, ...], float]:
        """The node's numbers, by name and labels."""
        with urlopen(f"http://{self.monitor}/metrics", timeout=SECONDS) as answer:
            text = answer.read().decode()
        return {
            (sample.name.removeprefix("chainkit_node_"), *sorted(sample.labels.values())): (
                sample.value
            )
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith("chainkit_node_")
        }


@pytest.fixture(scope="module")
def arguments(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("operated")
    keystore = folder / "node.keystore"
    write_new_keystore(keystore, settings.password)
    return ["node", "run", "--keystore", str(keystore), "--database", str(folder / "node.db")]


@pytest.fixture(scope="module")
def node(
    settings: Settings, arguments: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operated]:
    folder = tmp_path_factory.mktemp("tls")
    files = CertificateFiles(folder / "certificate.pem", folder / "key.pem")
    write_pair((files.certificate, files.key), pair := make_pair())
    limits = folder / "limits.json"
    limits.write_text(
        json.dumps({"strangers": {"request_burst": BURST}, "storage": {"free_bytes": 2**62}})
    )
    service = Background(
        settings,
        folder / "log",
        *(*arguments, "--tls-certificate", files.certificate, "--tls-key", files.key),
        *("--grpc", "0.0.0.0:0", "--listen", "127.0.0.1:0", "--stale-seconds", "0"),
        *("--requests-per-second", "1", "--limits", limits, "--log-format", "json"),
    )
    try:
        service.start()
        monitor = logged(service, "listening")["address"]
        port = logged(service, "node_listening")["port"]
        credentials = grpc.ssl_channel_credentials(pair[0])
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            operated = Operated(port, monitor, channel, service)
            wait_until(service, lambda: operated.samples()["ready",] == 1)
            wait_until(service, lambda: operated.samples()["registry_state", "unknown"] == 0)
            yield operated
    finally:
        service.stop()


def logged(service: Background, event: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def look() -> bool:
        entries = (json.loads(line) for line in service.log_lines() if line.endswith("}"))
        found.extend(entry for entry in entries if entry["event"] == event)
        return bool(found)

    wait_until(service, look)
    return found[0]


def wait_until(service: Background, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        service.check()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    code: grpc.StatusCode = caught.value.code()
    return code


def test_node__with_tls__answers_health_and_readers_and_counts_them(node: Operated) -> None:
    status = health_pb2.HealthCheckResponse
    answer = node.call("Check", b"", "grpc.health.v1.Health")
    assert status.FromString(answer).status == status.SERVING
    request = QueryEnvelopesRequest(query=query(originators=[0]))
    envelopes = Envelopes.FromString(node.call("QueryEnvelopes", request.SerializeToString()))

    sent = node.samples().get(("envelopes_sent_total", "QueryEnvelopes"), 0)

    assert sent == len(envelopes.envelopes)


def test_node__that_the_registry_does_not_list__refuses_publishes_and_counts_them(
    node: Operated,
) -> None:
    request = Envelopes(envelopes=[publishes.paid(publishes.welcome())]).SerializeToString()

    code = code_of(lambda: node.call("PublishPayerEnvelopes", request))

    assert code is grpc.StatusCode.UNAVAILABLE
    found = node.samples()
    assert found["publishes_total", "unavailable"] == 1
    assert found["refusals_total", "PublishPayerEnvelopes", "UNAVAILABLE"] == 1


def test_node__that_the_registry_does_not_list__says_so_in_its_numbers(node: Operated) -> None:
    found = node.samples()

    states = {name[1]: value for name, value in found.items() if name[0] == "registry_state"}
    assert states == {"unknown": 0, "not_registered": 1, "disabled": 0, "enabled": 0}
    # A node that is not registered has no log of its own that could be incomplete.
    assert found["own_log_waits",] == 0


def test_node__on_sqlite__keeps_a_sequence_record_beside_the_file(
    node: Operated, arguments: list[str]
) -> None:
    assert Path(f"{arguments[-1]}.sequence-record").exists()


def test_node__with_less_free_space_than_it_leaves__says_so(node: Operated) -> None:
    found = node.samples()

    assert found["storage_short",] == 1
    assert 0 < found["storage_free_bytes",] < 2**62


def test_status__of_a_node_with_two_faults__says_what_is_wrong_and_what_to_do(
    node: Operated, settings: Settings
) -> None:
    said = run(settings, "node", "status", "--url", f"http://{node.monitor}", expected=(1,))

    assert "attention    the registry does not list this node's key\n" in said
    assert "  what to do: docs/runbook/node-not-enabled.md\n" in said
    assert "  what to do: docs/runbook/node-storage-short.md\n" in said


def test_node__plain_text_to_its_tls_port__is_not_answered_and_no_line_in_its_log(
    node: Operated,
) -> None:
    with grpc.insecure_channel(f"localhost:{node.port}") as channel:
        call = channel.unary_unary(f"/{REPLICATION}/QueryEnvelopes")
        assert code_of(lambda: call(b"", timeout=SECONDS)) is grpc.StatusCode.UNAVAILABLE
    # gRPC's core writes lines of its own form, past the log.
    assert [line for line in node.service.log_lines() if not line.startswith("{")] == []


def test_node__asked_too_often__refuses_and_counts(node: Operated) -> None:
    codes = {code_of(lambda: node.call("QueryEnvelopes", b"")) for _ in range(BURST + 5)}

    assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
    refused = node.samples()["refusals_total", "QueryEnvelopes", "RESOURCE_EXHAUSTED"]
    assert refused >= 1


def test_node__plain_text_for_strangers_that_nobody_asked_for__does_not_start(
    settings: Settings, arguments: list[str], tmp_path: Path
) -> None:
    with pytest.raises(CommandFailed, match="--grpc: expected --tls-certificate and --tls-key"):
        run(settings, *arguments, "--grpc", "0.0.0.0:0")
