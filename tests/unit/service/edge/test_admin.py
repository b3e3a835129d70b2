from __future__ import annotations

import pytest

from chainkit.service.edge.admin import read_counters, read_port


@pytest.mark.parametrize(
    ("answer", "port"),
    [
        (b"other::127.0.0.1:1\ncallers::127.0.0.1:5050\n", 5050),
        (b"callers::[::1]:5050\n", 5050),
        (b"callers::/a/socket\n", None),
        (b"callers::127.0.0.1:" + b"9" * 5000, None),
        (b"", None),
    ],
)
def test_read_port__listeners_of_envoy__is_the_callers(answer: bytes, port: int | None) -> None:
    assert read_port(answer) == port


def test_read_counters__of_two_scopes__are_summed_by_the_last_part_of_the_name() -> None:
    answer = b"http.a.late: 2\nhttp.b.late: 3\nnone: 0\nhttp.a.time: P0(1,2)\nlate\n\xff: \xff\n"

    assert read_counters(answer) == {"late": 5, "none": 0}
