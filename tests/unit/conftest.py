import pytest
from hypothesis import settings
from pytest_socket import disable_socket

from support.seeds import IS_SOAK

# A slow machine is no failure, and the whole folder runs in a minute.
settings.register_profile("unit", deadline=None, max_examples=1_000 if IS_SOAK else 25)
settings.load_profile("unit")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """No unit test opens a socket; pytest-socket lifts the ban after each test."""
    # An event loop wakes itself by a pair of Unix sockets.
    disable_socket(allow_unix_socket=True)
