"""Reports about nodes: writes reports for the council, and hands reports to other nodes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from chainkit.documents.files import moved_into_place
from chainkit.errors import ChainkitError, ConfigurationError
from chainkit.nodes.connection import NodeConnection
from chainkit.protocol.reports import misbehavior_digest, sign_report
from chainkit.service.log_lines import one_line
from chainkit.service.refusals import PassedOn
from chainkit.signatures import SigningKey

_SUBMIT_SECONDS: Final = 5.0

Report = tuple[int, bytes]
"""The accused node's id, and an UnsignedMisbehaviorReport."""


evidence_option = click.option(
    "--evidence",
    "evidence_path",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a signed report for each there, for `chainkit council triage`.",
)


def new_reporter() -> SigningKey:
    """Return a random key for reports: a report counts by its evidence, not by its signer."""
    return SigningKey(secrets.token_bytes(32))


def make_folder(path: Path) -> None:
    """Make the folder for reports. Raises ConfigurationError."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        expected, got = "a folder for reports", os.strerror(error.errno or 0)
        raise ConfigurationError(f"folder {path}", expected, got) from error


def write_reports(folder: Path, reports: Sequence[Report], key: SigningKey) -> None:
    """Sign reports, and write each report into the folder. Raises ConfigurationError."""
    for node_id, report in reports:
        name = f"about-{node_id}-{misbehavior_digest(report).hex()}.pb"
        write_file(folder / name, sign_report(report, key))


async def hand_in(reports: Sequence[Report], host: NodeConnection) -> list[Report]:
    """Hand in the reports about all other nodes; return the reports that the node took.

    Prints how many reports the node did not take.
    """
    others = [each for each in reports if each[0] != host.node_id]
    taken: list[Report] = []
    fault = ""
    for each in others:
        try:
            await host.submit_report(each[1], _SUBMIT_SECONDS)
            taken.append(each)
        except PassedOn as error:
            # The node judges each report on its own.
            fault = str(error)
        except ChainkitError as error:
            fault = str(error)
            break
    if fault:
        told = f"node {host.node_id} took {len(taken)} of {len(others)} reports: {one_line(fault)}"
        click.echo(told, err=True)
    return taken


def write_file(path: Path, content: bytes) -> None:
    """Write a file in one step. Raises ConfigurationError."""
    try:
        with moved_into_place(path) as partial_path:
            partial_path.write_bytes(content)
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise ConfigurationError(f"file {path}", "a file that can be written", got) from error
