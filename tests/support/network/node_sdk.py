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


class NodeSdkClient:
    """One installation of a person; the methods are those of ``localnet.native_client``."""

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
        key = account.key.to_0x_hex()
        client._do("register", gateway=gateway_url, database=str(database), key=key)
        return client

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

    def stream(self) -> None:
        """Begin to stream the messages of all groups."""
        self._do("stream")

    def streamed(self, group_id: bytes) -> list[str]:
        """Return the texts of a group that the stream has shown so far."""
        texts: list[str] = self._do("streamed", group=group_id.hex())
        return texts

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        end(self._process)
        self._process.stdout.close()

    def _do(self, name: str, **values: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": name} | values) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                assert "error" not in answer, answer["error"]
                return answer["answer"]
        raise AssertionError(f"{name}: the client ended with {self._process.wait()}")


class BrowserSdkClient(NodeSdkClient):
    """The same with npm's ``@xmtp/browser-sdk`` in a headless browser, by gRPC-Web."""

    script = ROOT / "tests" / "browser" / "sdk.mjs"
