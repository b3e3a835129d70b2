import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from chainkit.errors import InconsistentAnswer
from support.endpoints.fake_endpoint import FakeServer

THREADS, SPACES = 4, 3000


class Trickle:
    """A body of which each read gives one byte."""

    closed = False

    def __init__(self, body: bytes) -> None:
        self.body = iter(body)

    def read1(self, *_: Any) -> bytes:
        return bytes([byte]) if (byte := next(self.body, None)) is not None else b""

    read = read1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def eager_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
def test_count__bodies_read_by_many_threads__misses_none() -> None:
    sizes: list[int] = []

    def answer(call: Any) -> Trickle:
        body = b" " * SPACES + json.dumps({"id": call["id"], "result": "0x1"}).encode()
        sizes.append(len(body))
        return Trickle(body)

    endpoint = FakeServer(*[(200, {}, answer)] * THREADS).endpoint()
    threads = [threading.Thread(target=endpoint.chain_id) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert endpoint.traffic.bytes_received == sum(sizes)


def test_count__answer_beyond_the_bound__is_what_was_read() -> None:
    server = FakeServer((200, {}, b"x" * 300))
    endpoint = server.endpoint(longest_answer_bytes=100)

    with pytest.raises(InconsistentAnswer, match="more than 100 bytes"):
        endpoint.chain_id()

    assert endpoint.traffic.bytes_received == 300
