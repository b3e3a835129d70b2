"""How much callers may ask for: a JSON file, and options for limits that people often change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import click

from chainkit.service.certificate import ServerCertificate
from chainkit.service.edge.configuration import EdgeTimes
from chainkit.service.limits_file import read_limits_file
from chainkit.terminal.options import Option, file_option, gathered, several
from chainkit_node.cli.options import ListenOptions
from chainkit_node.process import ServingSettings
from chainkit_node.reporting.bounds import ReportRate
from chainkit_node.settings import NodeLimits, PayerLimits, StorageLimits, StrangerLimits


class Limits(NamedTuple):
    """The sections of the file."""

    strangers: StrangerLimits = StrangerLimits()
    nodes: NodeLimits = NodeLimits()
    payers: PayerLimits = PayerLimits()
    storage: StorageLimits = StorageLimits()
    edge: EdgeTimes = EdgeTimes()


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The file with limits, and what options set in its place; None where they say nothing."""

    limits_path: Path | None
    requests_per_second: int | None
    streams_of_one: int | None
    streams: int | None
    answer_bytes_per_second: int | None
    reports_per_minute: int

    def serving(self, listening: ListenOptions, shares_port: bool = False) -> ServingSettings:
        """Read all files that the options name. Raises ConfigurationError as their readers do."""
        files = listening.certificate_files()
        certificate = None if files is None else ServerCertificate(files)
        limits = Limits() if self.limits_path is None else read_limits(self.limits_path)
        names = ("requests_per_second", "streams_of_one", "streams", "answer_bytes_per_second")
        typed = {name: value for name in names if (value := getattr(self, name)) is not None}
        return ServingSettings(
            strangers=replace(limits.strangers, **typed),
            nodes=limits.nodes,
            payers=limits.payers,
            storage=limits.storage,
            edge_times=limits.edge,
            report_rate=ReportRate(self.reports_per_minute),
            address=listening.grpc_address,
            certificate=certificate,
            certificate_files=files,
            shares_port=shares_port,
        )


def read_limits(path: Path) -> Limits:
    """Read the limits; those that the file leaves out have defaults.

    Raises ConfigurationError that names the file and each field that is unknown or has no value in
    its range.
    """
    return Limits(**read_limits_file(path, Limits()._asdict()))


def _stranger_limit(flag: str, field: str, purpose: str) -> Option:
    # No default of click's own: it would replace what the file says.
    default = str(getattr(StrangerLimits(), field))
    at_least_0 = click.IntRange(min=0)
    return click.option(flag, field, type=at_least_0, show_default=default, help=purpose)


limit_options = several(
    file_option(
        "--limits",
        "limits_path",
        "CHAINKIT_LIMITS",
        "Limits of strangers, other nodes, payers, storage and Envoy, in JSON, such as "
        '{"strangers": {"request_burst": 500}, "nodes": {"streams": 100}}; docs/node.md lists all. '
        "The options below take precedence.",
    ),
    _stranger_limit(
        "--requests-per-second",
        "requests_per_second",
        "Requests of one address, in the long run; 0 for no limit, here and below. "
        "An IPv6 network of 64 bits counts as one address.",
    ),
    _stranger_limit("--streams-per-address", "streams_of_one", "Open streams of one address."),
    _stranger_limit("--streams", "streams", "Open streams of all addresses."),
    _stranger_limit(
        "--answer-bytes-per-second",
        "answer_bytes_per_second",
        "Bytes of answers to one address; above it they are slowed down.",
    ),
    click.option(
        "--reports-per-minute",
        type=click.IntRange(min=0),
        default=ReportRate().per_minute,
        show_default=True,
        help="Reports of misbehavior that one address may submit; 0 for no limit.",
    ),
    gathered(LimitOptions, "limits"),
)
"""Decorator: how much callers may ask for; the command takes LimitOptions."""
