"""A node that ends, in this process: its parts close, also where closing one of them fails."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_node.cli import run
from chainkit_node.originating.publisher import Publisher
from chainkit_node.serving.server import NodeServer
from localnet.accounts import write_new_keystore
from localnet.commands import Settings

THREADS = {"indexer", "judge", "sequencer", "reports"}
SECONDS = 60.0


@pytest.fixture(autouse=True)
def no_trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a node sets for its whole process."""
    monkeypatch.setattr(run, "collect_garbage_seldom", lambda: None)
    monkeypatch.setattr(logging.getLogger("chainkit"), "handlers", [])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    gc.unfreeze()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def running() -> set[str]:
    return {thread.name for thread in threading.enumerate()} & THREADS


def signal_once_running() -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if running() == THREADS:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        time.sleep(0.05)


def test_node__closing_two_parts_fails__closes_the_others_and_raises_the_first_failure(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop, close = NodeServer.stop, Publisher.close

    async def failing_stop(server: NodeServer) -> None:
        await stop(server)
        raise RuntimeError("server")

    def failing_close(publisher: Publisher) -> None:
        close(publisher)
        raise RuntimeError("publisher")

    monkeypatch.setattr(NodeServer, "stop", failing_stop)
    monkeypatch.setattr(Publisher, "close", failing_close)
    keystore = tmp_path / "node.keystore"
    write_new_keystore(keystore, settings.password)
    threading.Thread(target=signal_once_running).start()

    with pytest.raises(RuntimeError, match="server"):
        run.run_command.main(
            [
                *("--rpc", settings.rpc_url, "--deployment", str(settings.record_path)),
                *("--keystore", str(keystore), "--password-file", str(settings.password_path)),
                *("--database", str(tmp_path / "node.db"), "--grpc", "127.0.0.1:0"),
            ],
            standalone_mode=False,
        )

    assert running() == set()
    assert "not closed: RuntimeError: publisher" in capsys.readouterr().err
