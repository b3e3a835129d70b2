"""Children of a process that has connections of gRPC's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from localnet.process import end_with_parent

CHILDREN = 200
"""One in thirty ended before it was another program."""


@pytest.fixture
def connected() -> Iterator[None]:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(60)
        yield
    server.stop(None)


def test_start__with_a_connection_of_grpc__all_children_become_their_program(
    connected: None,
) -> None:
    codes = [
        subprocess.Popen(["true"], preexec_fn=end_with_parent, stderr=subprocess.DEVNULL).wait()
        for _ in range(CHILDREN)
    ]

    assert codes == [0] * CHILDREN
