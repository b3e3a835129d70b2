"""``node serve``: one more process that serves what `node run` stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from chainkit.errors import ConfigurationError
from chainkit.nodes.trust import peer_ca_option
from chainkit.service.edge.launch import enter
from chainkit.service.log_lines import LogEvent, configure_logging, log_event
from chainkit.service.monitor_server import MonitorServer, parse_listen
from chainkit.service.process import run_service
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.edge import print_edge_option
from chainkit.terminal.options import log_format_option, monitor_option
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage.location import parse_location
from chainkit_indexer.storage.store import Store
from chainkit_node.cli.limits import LimitOptions, limit_options
from chainkit_node.cli.options import ListenOptions, listen_options
from chainkit_node.reader_service import ReaderService, run_reader
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reader_health import ReaderHealth

_OF_MACHINE: Final = ("127.0.0.1", "localhost", "::1")
_OF_ALL: Final = {each: _OF_MACHINE for each in ("0.0.0.0", "[::]", *_OF_MACHINE, "[::1]")}
"""Hosts that lead to a process that listens at the host of the key."""


@click.command("serve", cls=CompleteCommand)
@database_option
@click.option(
    "--writer",
    "writer_url",
    metavar="URL",
    required=True,
    envvar="CHAINKIT_NODE_WRITER",
    show_envvar=True,
    help="Where `node run` listens, at a port of its own: payers' requests are passed on to it.",
)
@listen_options
@print_edge_option
@click.option(
    "--share-port",
    "shares_port",
    is_flag=True,
    help="Let several of these processes listen at one port, each with its own limits; the system "
    "gives every connection to one of them.",
)
@limit_options
@peer_ca_option
@monitor_option
@log_format_option
def serve_command(
    database: str,
    writer_url: str,
    listening: ListenOptions,
    is_edge_printed: bool,
    shares_port: bool,
    limits: LimitOptions,
    listen: str | None,
    log_format: str,
) -> None:
    """Serve what `node run` stores, from one more process on the same PostgreSQL.

    It learns of each commit at once, and needs no key and no endpoint of the chain. Any number of
    them may share one port.

    \b
    Example:
      chainkit node serve --database postgresql+psycopg://reader@db/chainkit \\
        --writer http://127.0.0.1:5052 --grpc 127.0.0.1:5051 --share-port
    """
    serving = limits.serving(listening, shares_port)
    _check_writer(writer_url, serving.address)
    enter(serving.edge(), is_printed=is_edge_printed)
    configure_logging(log_format)
    metrics = NodeMetrics()
    health = ReaderHealth(metrics)
    with _opened(database) as store, _monitored(listen, health):
        run_service(
            run_reader(
                ReaderService(
                    store=store,
                    metrics=metrics,
                    health=health,
                    serving=serving,
                    writer_url=writer_url,
                )
            )
        )


def _check_writer(url: str, address: str) -> None:
    """Raise ConfigurationError for this process's own address: it would ask itself without end."""
    host, _, port = address.rpartition(":")
    target = urlsplit(url)
    own = {host.strip("[]"), *_OF_ALL.get(host, ())}
    if port not in ("", "0") and port == str(target.port) and target.hostname in own:
        expected = "the address of `node run`, at a port of its own"
        raise ConfigurationError("--writer", expected, "this process's own")


@contextmanager
def _opened(database: str) -> Iterator[Store]:
    if isinstance(parse_location(database), Path):
        expected = "postgresql+psycopg://…, which several processes share"
        raise ConfigurationError("--database", expected, "a file")
    with closing(Store.open_existing(database)) as store:
        yield store


@contextmanager
def _monitored(listen: str | None, health: ReaderHealth) -> Iterator[None]:
    if listen is None:
        yield
        return
    paths = health.paths()
    with closing(MonitorServer(parse_listen(listen), paths)) as server:
        text = f"listening on {server.address} for {', '.join(paths)}"
        log_event(LogEvent("listening", text, {"address": server.address}))
        yield
