"""The proxy between nodes knows its readers by their processes, also where ports repeat."""

from __future__ import annotations

import socket
import subprocess
import sys

from support.network.tcp_proxy import Mode, TcpProxy

# A reader that takes the port which it is told, and says how its connection to the gate ends.
READER = """
import socket
from_port, to_port = map(int, input().split())
with socket.socket() as connection:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind(("127.0.0.1", from_port))
    connection.connect(("127.0.0.1", to_port))
    connection.settimeout(5)
    try:
        print(connection.recv(5).decode() or "cut")
    except ConnectionResetError:
        print("cut")
"""


def test_gate__reader_whose_port_another_process_uses__is_cut_all_the_same() -> None:
    with (
        TcpProxy() as proxy,
        socket.create_server(("127.0.0.1", 0)) as target,
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
        socket.socket() as ours,
        subprocess.Popen(
            [sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader,
    ):
        gate = proxy.gate()
        gate.target = target.getsockname()[1]
        # This process is older than the reader, so the system's list names it first.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ours.bind(("127.0.0.1", 0))
        ours.connect(elsewhere.getsockname())
        gate.set(Mode.CUT, reader.pid)

        said, _ = reader.communicate(f"{ours.getsockname()[1]} {gate.url.rpartition(':')[2]}\n", 60)

    assert said == "cut\n"
