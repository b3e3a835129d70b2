import pytest
from hypothesis import settings
from pytest_socket import disable_socket

# A slow machine is no failure, and the whole folder runs in seconds.
settings.register_profile("unit", deadline=None, max_examples=60)
settings.load_profile("unit")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """No unit test opens a socket; pytest-socket lifts the ban after each test."""
    disable_socket()
