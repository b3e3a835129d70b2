"""anvil as a child process: on a free port, ended with its owner."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, Final, Self

from chainkit.chain import Endpoint
from chainkit.errors import ConfigurationError
from localnet.process import end, end_with_parent, interruptions_deferred

_PROJECT_PROGRAMS: Final = Path(__file__).parent.parent / ".cache" / "bin"
"""The real program's path after `make setup`: npm's own link starts it through Node, which would
leave anvil running when only Node is ended."""

_GAS_CAP: Final = ("--enable-tx-gas-limit",)
_LISTENING: Final = re.compile(r"Listening on 127\.0\.0\.1:(\d+)")


class Anvil:
    """A running anvil; use as a context manager. ``options`` are passed to anvil unchanged."""

    def __init__(self, *options: str, caps_gas: bool = True) -> None:
        """Start anvil on a port that the system picks, and wait until anvil listens.

        ``caps_gas`` lets anvil refuse, as Ethereum does from Osaka on, a transaction that asks for
        more than 2^24 gas (EIP-7825).
        """
        program = shutil.which("anvil", path=f"{_PROJECT_PROGRAMS}:{os.environ['PATH']}")
        if program is None:
            raise ConfigurationError("anvil", "a program on the PATH (`make setup`)", "none")
        with interruptions_deferred():
            self._process = subprocess.Popen(
                [program, "--port", "0", *_GAS_CAP[:caps_gas], *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                # Ctrl-C reaches the whole foreground group: anvil must outlive the commands that
                # still use it, so it is in a session of its own.
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._drain = threading.Thread(target=self._discard_output, daemon=True)
        self.url = f"http://127.0.0.1:{self._wait_for_port()}"
        self.endpoint = Endpoint.connect(self.url)

    def __enter__(self) -> Self:
        """Return this object: anvil runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.stop()

    def stop(self) -> None:
        """End the process and wait for its end."""
        end(self._process)
        self._drain.join()
        self._output.close()

    def request(self, method: str, *params: Any) -> Any:
        """Call anvil, also for its own methods."""
        return self.endpoint.request(method, *params)

    def _wait_for_port(self) -> int:
        for line in self._output:
            if match := _LISTENING.search(line):
                # anvil goes on writing; an unread pipe would fill up and stop it.
                self._drain.start()
                return int(match.group(1))
        raise RuntimeError(f"anvil: expected to listen, ended with {self._process.wait()}")

    def _discard_output(self) -> None:
        for _ in self._output:
            pass
