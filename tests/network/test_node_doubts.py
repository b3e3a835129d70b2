"""Nodes with TLS of a private authority, which doubt themselves: their certificate, their key."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from chainkit.service.certificate import CertificateFiles
from support.chains.chain import Deployment
from support.command_line import run
from support.network.certificates import Authority, Pair, make_authority
from support.network.real_nodes import RealNetwork, RealNode, real_network, until
from support.network.tcp_proxy import Mode


@dataclass
class Two:
    """Two nodes whose certificates are of one authority, which is not public."""

    network: RealNetwork
    authority: Authority
    ca_path: Path
    nodes: list[RealNode]

    def files(self, node: RealNode) -> CertificateFiles:
        folder = self.ca_path.parent / str(self.nodes.index(node))
        return CertificateFiles(folder / "certificate.pem", folder / "key.pem")

    def replace(self, node: RealNode, pair: Pair) -> None:
        """Replace a node's certificate, and have all others connect to it again."""
        write(self.files(node), pair)
        # A node that connects before the new one is served stays connected.
        place = ("127.0.0.1", node.gate.target)
        until(lambda: der(ssl.get_server_certificate(place)) == der(pair[0].decode()))
        node.gate.drop()


def der(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem[: pem.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)])


def write(files: CertificateFiles, pair: Pair) -> None:
    files.certificate.parent.mkdir(exist_ok=True)
    for path, content in zip((files.certificate, files.key), pair, strict=True):
        path.with_suffix(".new").write_bytes(content)
        os.replace(path.with_suffix(".new"), path)


@pytest.fixture(scope="module")
def two(local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder, authority = tmp_path_factory.mktemp("doubts"), make_authority()
    pairs = folder / "pairs"
    pairs.mkdir()
    with real_network(local_deployment, folder) as network:
        found = Two(network, authority, pairs / "ca.pem", network.nodes)
        found.ca_path.write_bytes(authority.certificate)
        for number in range(2):
            files = CertificateFiles(
                pairs / str(number) / "certificate.pem", pairs / str(number) / "key.pem"
            )
            write(files, authority.issue("localhost"))
            given = ("--tls-certificate", str(files.certificate), "--tls-key", str(files.key))
            network.add(None, *given, "--peer-ca", str(found.ca_path), roots=authority.certificate)
        for node in network.nodes:
            node.listens()
        for node in network.nodes:
            node.originates()
        yield found


def log_of(node: RealNode) -> list[str]:
    assert node.service is not None
    return node.service.log_lines()


def test_nodes__certificates_of_a_private_authority__read_each_other(two: Two) -> None:
    one, other = two.nodes
    [envelope] = one.publish()

    until(lambda: envelope in other.holds(one.node_id))
    until(lambda: one.attention() == other.attention() == set())
    assert one.metric("certificate_seconds_left") > 300 * 24 * 60 * 60


def test_watch__private_authority__says_what_is_not_trusted_without_the_option(two: Two) -> None:
    place = ("--rpc", two.network.chain.url, "--deployment", two.network.chain.record_path)

    def looked(*options: object) -> list[dict[str, Any]]:
        return list(run("node", "watch", "--once", "--json", *place, *options).content["nodes"])

    for each in looked():
        assert "certificate at 127.0.0.1: unable to get local issuer" in str(each["error"])
    for each in looked("--peer-ca", two.ca_path):
        assert (each["error"], each["health"]) == (None, "SERVING")


@pytest.mark.parametrize(
    ("name", "days", "reason"),
    [
        ("localhost", -1, "certificate has expired"),
        ("other.example", 90, "Hostname mismatch, certificate is not valid for 'localhost'"),
    ],
)
def test_certificate__that_others_refuse__is_known_to_its_node_and_the_reason_to_the_others(
    two: Two, name: str, days: float, reason: str
) -> None:
    reader, node = two.nodes
    two.replace(node, two.authority.issue(name, days=days))

    until(lambda: f"certificate at 127.0.0.1: {reason}" in reader.stream_error(node))
    until(lambda: "certificate_wrong" in node.attention())
    assert node.metric("certificate_seconds_left") == 0
    node.said("certificate_refused_by_others")

    two.replace(node, two.authority.issue("localhost"))
    until(lambda: node.attention() == reader.attention() == set())
    # The core of gRPC writes a line of its own form for each handshake that fails.
    assert [each for each in (*log_of(node), *log_of(reader)) if not each.startswith("{")] == []


def test_twin__at_no_url__originates_nothing_and_the_first_one_shows_it(two: Two) -> None:
    first, other = two.nodes
    first.publish()
    twin = two.network.twin(first)
    twin.listens()
    twin.said("twin_found")

    until(lambda: "twin_found" in twin.attention() and "twin_found" in first.attention())
    with pytest.raises(grpc.RpcError, match="another process with its key at its URL"):
        twin.publish()
    assert "twin" in twin.failing_checks() & first.failing_checks()
    assert twin.metric("twin_found") == first.metric("twin_found") == 1
    # The one that others read goes on.
    [envelope] = first.publish()
    until(lambda: envelope in other.holds(first.node_id))
    twin.kill()


def test_twin__that_does_not_reach_its_url__stops_at_an_envelope_that_it_did_not_sign(
    two: Two,
) -> None:
    first, other = two.nodes
    twin = two.network.twin(first)
    first.gate.set(Mode.CUT, twin.pid)
    twin.listens()
    twin.originates()
    assert "twin_found" not in twin.attention()

    [envelope] = first.publish()
    until(lambda: envelope in other.holds(first.node_id))
    # A node that begins to answer is compared with at once.
    other.gate.drop()

    twin.said("twin_found")
    with pytest.raises(grpc.RpcError, match="which this process did not sign"):
        twin.publish()
    assert envelope in twin.holds(first.node_id)
    assert not any(each["proved"] for each in (*first.hosts(), *other.hosts()))
    twin.kill()
