from __future__ import annotations

import sys

import pytest

from chainkit.service.open_files import OTHER_FILES, fit


@pytest.mark.parametrize(
    ("connections", "soft", "hard", "raised", "fitting"),
    [
        pytest.param(1000, 5000, 9000, 5000, 1000, id="enough already"),
        pytest.param(1000, 300, 9000, 1000 + OTHER_FILES, 1000, id="raised as far as needed"),
        pytest.param(1000, 300, 900, 900, 900 - OTHER_FILES, id="raised as far as allowed"),
        pytest.param(1000, 100, 100, 100, 1, id="hardly any"),
        pytest.param(1000, sys.maxsize, sys.maxsize, sys.maxsize, 1000, id="without a limit"),
        pytest.param(0, 300, 900, 300, 0, id="switched off"),
    ],
)
def test_connections__beside_the_files_of_the_process__leave_room_for_the_database(
    connections: int, soft: int, hard: int, raised: int, fitting: int
) -> None:
    assert fit(connections, soft, hard) == (raised, fitting)
