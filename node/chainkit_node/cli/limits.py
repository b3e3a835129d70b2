"""How much callers may ask for: a JSON file, and options for limits that people often change."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from chainkit.documents.fields import Faults, Fields, read_json
from chainkit.errors import ConfigurationError
from chainkit.service.certificate import ServerCertificate
from chainkit.service.edge.configuration import EdgeTimes
from chainkit.terminal.options import Option, file_option, gathered, several
from chainkit_node.cli.options import ListenOptions
from chainkit_node.process import ServingSettings
from chainkit_node.reporting.bounds import ReportRate
from chainkit_node.settings import NodeLimits, PayerLimits, StorageLimits, StrangerLimits

_SMALLEST: Final = {
    **{"request_burst": 1, "publish_burst_bytes": 1, "burst_bytes": 1},
    **{each.name: 1 for each in fields(EdgeTimes)},
    **{"buffer_bytes": 65_536, "header_bytes": 1024, "heap_bytes": 128 << 20},
}
"""For every other field 0 switches the limit off."""

_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")

_Limits = TypeVar("_Limits", StrangerLimits, NodeLimits, PayerLimits, StorageLimits, EdgeTimes)


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
    subject = f"limits {path}"
    content, faults = Fields(read_json(path, subject), subject), Faults(subject)
    sections = faults.known(content, Limits._fields)
    found = {each: faults.read(None, content.inner, each) for each in sections}
    limits = Limits(
        _section(StrangerLimits(), found.get("strangers"), faults),
        _section(NodeLimits(), found.get("nodes"), faults),
        _section(PayerLimits(), found.get("payers"), faults),
        _section(StorageLimits(), found.get("storage"), faults),
        _section(EdgeTimes(), found.get("edge"), faults),
    )
    faults.raise_all()
    return limits


def _section(defaults: _Limits, content: Fields | None, faults: Faults) -> _Limits:
    if content is None:
        return defaults
    given: dict[str, Any] = {}
    for name in faults.known(content, [field.name for field in fields(defaults)]):
        if name == "allowed":
            given[name] = faults.read((), partial(_addresses, content, faults.subject), name)
            continue
        smallest = _SMALLEST.get(name, 0)
        given[name] = faults.read(smallest, content.integer, name)
        if given[name] < smallest:
            faults.add(f"an integer from {smallest}", given[name], content.path(name))
    return replace(defaults, **given)


def _addresses(content: Fields, subject: str, name: str) -> tuple[str, ...]:
    addresses = []
    for value, path in content.elements(name):
        if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
            expected = "an address, 0x and 40 hex digits"
            raise ConfigurationError(subject, expected, repr(value)[:60], path)
        addresses.append(value)
    return tuple(addresses)


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
