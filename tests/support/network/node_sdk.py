"""Clients of npm's SDKs, each in a child process that is told what to do line by line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from eth_account.signers.local import LocalAccount

from localnet.process import end, end_with_parent, interruptions_deferred
from support.project import ROOT


class NodeSdkFailed(Exception):
    """The SDK threw, with its words."""


class NodeSdkClient:
    """One installation of a person; methods as those of ``localnet.native_client``, and more.

    Each runs to its end before the next one begins. All but ``close`` raise NodeSdkFailed. The
    process ends with the thread that made it.
    """

    script = Path(__file__).with_name("node_sdk.mjs")

    def __init__(self, account: LocalAccount) -> None:
        self.account = account
        path = f"{ROOT / '.cache' / 'bin'}:{os.environ['PATH']}"
        with interruptions_deferred():
            self._process = subprocess.Popen(
                ["node", str(self.script)],
                env=os.environ | {"PATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=end_with_parent,
            )

    @classmethod
    def register(cls, gateway_url: str, database: Path, account: LocalAccount) -> Self:
        client = cls(account)
        try:
            client.connect(gateway_url, database)
        except NodeSdkFailed:
            client.close()
            raise
        return client

    def connect(self, gateway_url: str, database: Path, syncs_devices: bool = False) -> None:
        """Connect through a gateway, and register an inbox for the wallet."""
        place = {"gateway": gateway_url, "database": str(database)}
        key = self.account.key.to_0x_hex()
        self._do("register", **place, key=key, syncsDevices=syncs_devices)

    def installation(self) -> str:
        """Return the installation's id, in hex."""
        installation: str = self._do("installation")
        return installation

    def installations(self) -> set[str]:
        """Return the ids of the inbox's installations, by the updates that the network has."""
        return set(self._do("installations"))

    def create_group(self, others: Sequence[LocalAccount]) -> bytes:
        addresses = [other.address for other in others]
        return bytes.fromhex(self._do("createGroup", addresses=addresses))

    def send(self, group_id: bytes, text: str) -> None:
        self._do("send", group=group_id.hex(), text=text)

    def join(self) -> list[bytes]:
        return [bytes.fromhex(group) for group in self._do("join")]

    def read(self, group_id: bytes) -> list[str]:
        texts: list[str] = self._do("read", group=group_id.hex())
        return texts

    def rename(self, group_id: bytes, name: str) -> None:
        """Give a group a name: a commit."""
        self._do("rename", group=group_id.hex(), name=name)

    def name(self, group_id: bytes) -> str:
        """Return a group's name after a sync."""
        name: str = self._do("name", group=group_id.hex())
        return name

    def list(self, group_id: bytes) -> list[str]:
        """Return a group's texts, and its renames as ``group_name: …``, after a sync."""
        shown: list[str] = self._do("list", group=group_id.hex())
        return shown

    def request_history(self, history_url: str) -> None:
        """Ask the person's other devices to upload their messages to a storage service."""
        self._do("requestHistory", history=history_url)

    def send_archive(self, pin: str, history_url: str) -> None:
        """Upload all messages to a storage service, for devices that name the PIN."""
        self._do("sendArchive", pin=pin, history=history_url)

    def take_archive(self, pin: str) -> None:
        """Import an archive of another device, by its PIN."""
        self._do("takeArchive", pin=pin)

    def deny(self, group_id: bytes) -> None:
        """Refuse a group, and tell the person's other devices."""
        self._do("deny", group=group_id.hex())

    def is_denied(self, group_id: bytes) -> bool:
        """Return whether a group is refused, after a sync with the person's other devices."""
        denied: bool = self._do("isDenied", group=group_id.hex())
        return denied

    def sync_devices(self) -> None:
        """Read what the person's other devices sent this one; their requests are answered."""
        self._do("syncDevices")

    def stream(self, retry_seconds: float = 60, syncs: bool = True) -> None:
        """Begin to stream the messages of all groups.

        The defaults are the SDK's: a stream that was cut waits so long, and syncs before it begins
        again. It never shows what a sync has fetched.
        """
        self._do("stream", retrySeconds=retry_seconds, syncs=syncs)

    def streamed(self, group_id: bytes) -> list[str]:
        """Return what the stream has shown of a group so far, in the form of ``list``."""
        shown: list[str] = self._do("streamed", group=group_id.hex())
        return shown

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        end(self._process)
        self._process.stdout.close()

    def _do(self, command: str, /, **values: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command} | values) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                if "error" in answer:
                    raise NodeSdkFailed(f"{command}: {answer['error']}")
                return answer["answer"]
        raise NodeSdkFailed(f"{command}: the client ended with {self._process.wait()}")


class BrowserSdkClient(NodeSdkClient):
    """The same with npm's ``@xmtp/browser-sdk`` in a headless browser, by gRPC-Web."""

    script = ROOT / "tests" / "browser" / "sdk.mjs"
