"""An S3 server of another hand: moto, in a process of its own; its objects end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from localnet.ports import free_port
from localnet.process import end, end_with_parent, interruptions_deferred
from support.network.own_gateway import SECONDS

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
ENVIRONMENT = KEYS | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
"""How the server's clients name themselves."""


class S3Server:
    """A server that may be stopped; each start has no buckets."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        with self._log.open("wb") as log, interruptions_deferred():
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ, preexec_fn=end_with_parent
            )
        deadline = time.monotonic() + SECONDS
        while not self._is_up():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/", timeout=SECONDS):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)
