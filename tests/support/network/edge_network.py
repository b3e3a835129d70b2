"""Nodes, one with TLS, and a gateway; and counts of what Envoy ended."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localnet.network import start_gateway
from support.chains.chain import Deployment
from support.network.certificates import make_pair, write_pair
from support.network.real_nodes import PASSWORD, RealNetwork, RealNode, real_network, until


@dataclass(frozen=True)
class EdgeNetwork:
    """Two nodes that replicate from each other, the second one with TLS, and a gateway."""

    network: RealNetwork
    node: RealNode
    peer: RealNode
    files: tuple[Path, Path]
    """The certificate and the key of the peer."""
    gateway_url: str

    @property
    def url(self) -> str:
        """Where the first node listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        port = self.node.gate.target
        assert port is not None
        return port


def ended(node: RealNode) -> dict[str, float]:
    """Return a node's counts of what Envoy ended, by the reasons."""
    with urllib.request.urlopen(f"{node.monitor}/metrics", timeout=30) as answer:
        lines = bytes(answer.read()).decode().splitlines()
    name = "chainkit_node_edge_ended_total{reason="
    found = [each.removeprefix(name).split("} ") for each in lines if each.startswith(name)]
    return {reason.strip('"'): float(value) for reason, value in found}


@contextmanager
def edge_network(deployment: Deployment, folder: Path) -> Iterator[EdgeNetwork]:
    """Start everything; it ends with the block."""
    files, pair = (folder / "certificate.pem", folder / "key.pem"), make_pair()
    write_pair(files, pair)
    trusting = ("--peer-ca", str(files[0]))
    with ExitStack() as stack:
        network = stack.enter_context(real_network(deployment, folder))
        node = network.add(None, *trusting)
        tls = ("--tls-certificate", str(files[0]), "--tls-key", str(files[1]))
        peer = network.add(None, *trusting, *tls, roots=pair[0])
        for each in (node, peer):
            each.listens()
        for each in (node, peer):
            each.originates()
        until(lambda: all(each.peer_streams() == 1 for each in (node, peer)))
        gateway = start_gateway(
            *(stack, network.settings, folder, PASSWORD),
            *("--node", f"{node.node_id}={node.gate.url}"),
        )
        yield EdgeNetwork(network, node, peer, files, gateway)
