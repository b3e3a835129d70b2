"""A node that ends while closing some of its parts fails."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from localnet.accounts import write_new_keystore
from localnet.commands import Background, Settings, start_command
from localnet.network import start_service

FAULTS = """
from chainkit_node.originating.publisher import Publisher
from chainkit_node.serving.server import NodeServer

stop, close = NodeServer.stop, Publisher.close


async def failing_stop(server):
    await stop(server)
    raise RuntimeError("server")


def failing_close(publisher):
    close(publisher)
    raise RuntimeError("publisher")


NodeServer.stop, Publisher.close = failing_stop, failing_close
"""


def test_node__closing_two_parts_fails__closes_the_others_and_ends_with_the_first_failure(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python imports this module whenever it starts: a warm process has started already.
    monkeypatch.setattr("localnet.commands.start_command", start_command)
    (tmp_path / "sitecustomize.py").write_text(FAULTS)
    places = (str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
    keystore = tmp_path / "node.keystore"
    write_new_keystore(keystore, settings.password)
    options = ("--keystore", keystore, "--database", tmp_path / "node.db")
    log = ("--grpc", "127.0.0.1:0", "--log-format", "json")
    node = Background(settings, tmp_path / "node.log", "node", "run", *options, *log)
    with ExitStack() as stack:
        start_service(stack, node, "node_listening")

        assert node.stop() == 2

    said = "\n".join(node.log_lines())
    assert "not closed: RuntimeError: publisher" in said
    assert said.splitlines()[-1] == "RuntimeError: server"
