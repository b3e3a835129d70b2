"""``chainkit doctor``: what each role needs of a machine, and how to get what is missing."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Final

import click

from chainkit.errors import ChainkitError
from chainkit.extras import how_to_install
from chainkit.service.edge.packages import shared_library
from chainkit.terminal.java import JAVA_HINT, MINIMUM_JAVA, java_version, output_of
from chainkit.terminal.machine import Finding, ServiceFiles, service_options
from chainkit.terminal.options import echo_json, json_option

_INDEXER_PACKAGES: Final = ("sqlalchemy", "pyarrow", "psycopg", "alembic", "prometheus_client")
_SERVER_PACKAGES: Final = (
    "grpcio",
    "grpc_health",
    "grpc_reflection",
    "google.rpc",
    "pyvoy",
    "envoy",
)
_AUDIT_PACKAGES: Final = (
    "pyspark",
    "pyarrow",
    "pandas",
    "matplotlib",
    "jinja2",
    "packaging",
    "grpcio",
    "grpcio_status",
)
_MODULES: Final = {"grpcio": "grpc", "grpcio_status": "google.rpc"}
"""Packages whose modules have another name."""


_NODE_MODULE: Final = "chainkit_node.cli.machine"
"""Imported by name: the library is below the node's package, which may not be installed."""


def inspect_machine() -> list[Finding]:
    """Look at packages and programs; nothing is installed and no server is asked."""
    in_a_clone = "`make setup` in a clone, then .cache/bin on the PATH (CONTRIBUTING.md)"
    return [
        _python(),
        *(_package("operator", name, "indexer") for name in _INDEXER_PACKAGES),
        *(_package("node", name, "node") for name in (*_INDEXER_PACKAGES, *_SERVER_PACKAGES)),
        _shared_python("node"),
        *(_package("application", name, "gateway") for name in ("sqlalchemy", *_SERVER_PACKAGES)),
        _shared_python("application"),
        *(_package("storage", name, "backups") for name in ("aiohttp", "prometheus_client")),
        *(_package("auditor", name, "audit") for name in _AUDIT_PACKAGES),
        _java(),
        _package("council", "eth_account", ""),
        *(_package("council", name, "council") for name in ("grpcio", "grpcio_status")),
        _package("developer", "ape", "contracts"),
        _program("developer", "node", in_a_clone),
        _program("developer", "anvil", in_a_clone),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("everyone", "python", sys.version_info >= (3, 11), version)


def _java() -> Finding:
    version = java_version()
    if version is not None and version >= MINIMUM_JAVA:
        return Finding("auditor", "java", True, str(version))
    found = f"found {version}, " if version else ""
    return Finding("auditor", "java", False, f"{found}needs {MINIMUM_JAVA}: {JAVA_HINT}")


def _shared_python(role: str) -> Finding:
    """Return whether Envoy can hold Python."""
    try:
        return Finding(role, "libpython", True, str(shared_library()))
    except ChainkitError as error:
        return Finding(role, "libpython", False, str(error))


def _package(role: str, name: str, extra: str) -> Finding:
    present = _is_installed(_MODULES.get(name, name))
    return Finding(role, name, present, "installed" if present else how_to_install(extra))


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        # The package that would contain the module is missing, too.
        return False


def _program(role: str, name: str, hint: str) -> Finding:
    program = shutil.which(name)
    if program is None:
        return Finding(role, name, False, hint)
    output = output_of(program, "--version")
    if output is None:
        return Finding(role, name, False, f"{program} does not run: {hint}")
    return Finding(role, name, True, output.partition("\n")[0])


@click.command()
@click.option(
    "--role",
    type=click.Choice(
        ["operator", "node", "application", "storage", "auditor", "council", "developer"]
    ),
    help="Look only at what this role needs.",
)
@service_options
@json_option
def doctor(role: str | None, given: ServiceFiles, as_json: bool) -> None:
    """Say what this machine has, what each role lacks, and how to get it.

    Exits 1 if something is lacking. With `--role node` it also looks at the clock, open files and
    disk, and at the certificate and the endpoints where they are given, as `node run` gets them:
    endpoints are asked, nobody else is, and nothing is written.

    \b
    Example:
      chainkit doctor --role auditor
    """
    findings = [f for f in inspect_machine() if role is None or f.role in (role, "everyone")]
    if role == "node" and all(finding.present for finding in findings):
        inspect_service: Callable[[ServiceFiles], Iterable[Finding]] = importlib.import_module(
            _NODE_MODULE
        ).inspect_service
        findings += inspect_service(given)
    if as_json:
        echo_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            mark = "ok     " if finding.present else "missing"
            click.echo(f"{mark}  {finding.role:<11} {finding.name:<17} {finding.detail}")
    if not all(finding.present for finding in findings):
        sys.exit(1)
