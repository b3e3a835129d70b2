"""The storage service as a process: HTTP and its background tasks, until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.errors import StoreError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.monitor_server import MonitorServer, parse_listen
from chainkit.text.counting import counted
from chainkit_backups.admission import Admission
from chainkit_backups.handlers import BackupHandlers, Terms
from chainkit_backups.monitoring import BackupsMonitor
from chainkit_backups.server import HttpServer, caller_address
from chainkit_backups.store import Store
from chainkit_backups.types import Kind, Limits

_BACKGROUND_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Backups:
    """Everything that a running service needs, opened by its command line."""

    store: Store
    limits: Mapping[Kind, Limits]
    terms: Terms
    address: str
    """``HOST:PORT`` for clients; port 0 takes a free one."""
    public_url: str | None
    """The public URL of the service; None for the address itself."""
    proxies: Collection[str]
    """IP addresses of proxies in front of the service."""
    listen: str | None
    """``HOST:PORT`` of the monitor server; None for no monitor server."""


async def serve(backups: Backups) -> None:
    """Answer clients until SIGINT or SIGTERM comes.

    Raises ConfigurationError where nobody can listen at an address.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    admission = Admission(backups.limits, backups.store.files, time.monotonic)
    monitor = BackupsMonitor(backups.store, admission)
    handlers = BackupHandlers(backups.store, admission, backups.terms, monitor, time.time)
    server = HttpServer(
        handlers.routes(
            lambda: backups.public_url or f"http://{host}:{port}",
            lambda request: caller_address(request, backups.proxies),
        ),
        backups.proxies,
        backups.terms.patience,
    )
    watched = _watched(backups, monitor)
    background = asyncio.create_task(_background_tasks(backups.store, admission, monitor))
    try:
        host, port = backups.address.rpartition(":")[0], await server.start(backups.address)
        text = f"storage service at http://{host}:{port}"
        log_event(LogEvent("backups_listening", text, {"port": port}))
        await stop.wait()
    finally:
        await server.stop()
        background.cancel()
        await asyncio.gather(background, return_exceptions=True)
        if watched is not None:
            watched.close()


def _watched(backups: Backups, monitor: BackupsMonitor) -> MonitorServer | None:
    if backups.listen is None:
        return None
    server = MonitorServer(parse_listen(backups.listen), monitor.paths)
    text = f"listening on {server.address} for {', '.join(monitor.paths)}"
    log_event(LogEvent("listening", text, {"address": server.address}))
    return server


async def _background_tasks(store: Store, admission: Admission, monitor: BackupsMonitor) -> None:
    while True:
        monitor.heartbeat()
        try:
            gone = await asyncio.to_thread(store.purge)
        except StoreError as error:
            # Expired files are not served meanwhile.
            log_event(LogEvent("purge_failed", str(error), level=logging.ERROR))
        else:
            for each in gone:
                admission.give_back(each, each.size)
            monitor.purged(len(gone))
            if gone:
                text = f"{counted(len(gone), 'file')} removed that had expired"
                log_event(LogEvent("files_purged", text, {"files": len(gone)}))
        await asyncio.sleep(_BACKGROUND_SECONDS)
