"""A gateway of a test's own, that may be killed and started again on its journal."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from pathlib import Path

from localnet import commands
from localnet.accounts import development_account, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.process import end
from support.network.api import Api

ACCOUNT = 8
PAYER_ADDRESS = development_account(ACCOUNT).address
SECONDS = 30.0


class OwnGateway:
    """A gateway that may be killed; each start listens on another port."""

    def __init__(
        self, settings: Settings, folder: Path, node: tuple[int, str], *options: str
    ) -> None:
        """Take the node's id and URL, and more options of ``gateway run``."""
        keystore = folder / "payer.keystore"
        write_keystore(keystore, settings.password, ACCOUNT)
        self.log = folder / "gateway.log"
        self.environment = settings.environment
        self.command = [
            *("gateway", "run", "--keystore", str(keystore)),
            *("--journal", str(folder / "gateway.db")),
            *("--node", f"{node[0]}={node[1]}"),
            *("--grpc", "127.0.0.1:0", "--log-format", "json", *options),
        ]
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Api:
        return Api(self.start_at())

    def start_at(self) -> str:
        """Start, and return the URL."""
        with self.log.open("wb") as log:
            self.process = commands.start_command(self.command, self.environment, log)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if '"gateway_listening"' in line and line.endswith("}"):
                    return f"http://127.0.0.1:{json.loads(line)['port']}"
            time.sleep(0.05)
        raise AssertionError(f"exit {self.process.poll()}: {self.log.read_text()}")

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self.process is not None
        return self.process.pid

    @property
    def monitor(self) -> str:
        """The URL of the monitor, where an option of the command has one."""
        entries = map(json.loads, self.log.read_text().splitlines())
        [address] = [each["address"] for each in entries if each["event"] == "listening"]
        return f"http://{address}"

    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self.monitor}/metrics", timeout=SECONDS) as answer:
            text: str = answer.read().decode()
            return text

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)


def wait_for_transaction(chain: Anvil) -> None:
    """Wait until a transaction is in the pool; nothing must be mined meanwhile."""
    deadline = time.monotonic() + SECONDS
    while chain.request("txpool_status")["pending"] == "0x0":
        assert time.monotonic() < deadline
        time.sleep(0.02)
