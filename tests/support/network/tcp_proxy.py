"""A TCP proxy between nodes, with a gate before each: open, stalled or cut, for each reader apart.

Every node's address in the registry is its gate. All of them are on loopback, so a reader is known
by its process, as the kernel's tables name it (Linux only).
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, Self

from support.network.loop_thread import LoopThread

_CHUNK = 64 << 10


class Mode(Enum):
    """How a gate treats the connections of a reader."""

    OPEN = "open"
    STALLED = "stalled"
    """It accepts, and passes nothing on; what waits goes on once the gate is open."""
    CUT = "cut"
    """It ends connections, and accepts no new one."""


class TcpProxy:
    """Runs a thread from its construction until the end of the block; use as a context manager."""

    def __init__(self) -> None:
        self._gates: list[Gate] = []
        self._loop = LoopThread("proxy")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.end(self._end())

    def gate(self) -> Gate:
        """Open a gate on a free port; it leads nowhere until it has a target."""
        gate = Gate(self._loop.do)
        self._loop.do(gate.listen())
        self._gates.append(gate)
        return gate

    async def _end(self) -> None:
        for each in self._gates:
            each.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A transport that was aborted is closed at the loop's next turn.
        await asyncio.sleep(0)


class Gate:
    """The address of one node; the methods without ``async`` are for the test's thread."""

    def __init__(self, do: Any) -> None:
        self._do = do
        self._everybody = Mode.OPEN
        self._readers: dict[int, Mode] = {}
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.target = 0
        """The port that the node listens on."""
        self.source: str | None = None
        """The address from which the node sees all readers come, where it is not the usual one."""

    @property
    def url(self) -> str:
        """Where readers connect."""
        return f"http://127.0.0.1:{self._port}"

    def set(self, mode: Mode, *readers: int) -> None:
        """Treat processes so from now on, and everybody where none is named."""
        self._do(self._set(mode, readers))

    def drop(self) -> None:
        """End all connections once; new ones are treated as before."""
        self._do(self._drop())

    async def listen(self) -> None:
        """Take a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Take no more connections; on the loop's thread."""
        if self._server is not None:
            self._server.close()

    def mode_of(self, reader: int) -> Mode:
        """Return how a process is treated."""
        return self._readers.get(reader, self._everybody)

    async def _set(self, mode: Mode, readers: tuple[int, ...]) -> None:
        if readers:
            self._readers |= dict.fromkeys(readers, mode)
        else:
            self._everybody, self._readers = mode, {}
        for each in list(self._connections):
            each.treat(self.mode_of(each.reader))

    async def _drop(self) -> None:
        for each in list(self._connections):
            each.treat(Mode.CUT)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        process = 0
        try:
            process = await asyncio.to_thread(_process_of, port, self._port)
        finally:
            if not process:
                # It has ended, or the tables changed while they were read: it may try again.
                writer.transport.abort()
        if not process:
            return
        connection = _Connection(process, reader, writer)
        self._connections.add(connection)
        connection.treat(self.mode_of(connection.reader))
        try:
            await connection.carry(self.target, self.source)
        finally:
            connection.treat(Mode.CUT)
            self._connections.discard(connection)


class _Connection:
    """A reader's connection, and the one behind it to the node."""

    def __init__(
        self, reader: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self._source = source
        self._writers = [sink]
        self._passes = asyncio.Event()
        self._is_cut = False

    def treat(self, mode: Mode) -> None:
        if self._is_cut:
            return
        if mode is Mode.OPEN:
            self._passes.set()
        elif mode is Mode.STALLED:
            self._passes.clear()
        else:
            self._is_cut = True
            self._passes.set()
            # A reset, and not an orderly end: nothing that waits is sent any more.
            for each in self._writers:
                each.transport.abort()

    async def carry(self, port: int, address: str | None) -> None:
        """Carry bytes in both directions until one of the ends is closed."""
        await self._passes.wait()
        if self._is_cut:
            return
        try:
            own = (address, 0) if address else None
            source, sink = await asyncio.open_connection("127.0.0.1", port, local_addr=own)
        except OSError:
            return
        self._writers.append(sink)
        if self._is_cut:
            sink.transport.abort()
        pumps = [
            asyncio.ensure_future(self._pump(self._source, sink)),
            asyncio.ensure_future(self._pump(source, self._writers[0])),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in pumps:
                each.cancel()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._passes.wait()
                sink.write(data)
                await sink.drain()


def _process_of(port: int, gate: int) -> int:
    """Return the process that has a connection from a port of loopback to a gate's, 0 for none.

    Two connections to different gates may leave from one port, so both ends are compared.
    """
    # gRPC's sockets speak IPv6 and IPv4; the tables of both have their own form of an address.
    forms = ("0100007F", "0000000000000000FFFF00000100007F")
    ends = {(f"{form}:{port:04X}", f"{form}:{gate:04X}") for form in forms}
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    rows = [line.split() for table in tables for line in table.read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in rows if (row[1], row[2]) in ends}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                for each in (folder / "fd").iterdir():
                    with suppress(OSError):
                        if os.readlink(each) in sockets:
                            return int(folder.name)
    return 0
