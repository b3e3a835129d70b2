"""Looks at what a node needs of its machine, and at what it is given (``doctor --role node``)."""

from __future__ import annotations

import ctypes
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.contracts.followed import FollowedDeployment, read_followed_deployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import ChainkitError, ConfigurationError
from chainkit.service.certificate import CertificateFiles, ServerCertificate
from chainkit.service.open_files import OTHER_FILES, fit, open_files
from chainkit.terminal.machine import Finding, ServiceFiles
from chainkit_indexer.storage.location import parse_location
from chainkit_node.originating.clock_check import MOST_SECONDS_APART
from chainkit_node.settings import StrangerLimits
from chainkit_node.watching.own_certificate import RENEW_SECONDS, check_certificate

LEAST_FREE: Final = 0.1
"""Part of a disk; the alarm DiskNearlyFull has the same."""
LEAST_DAYS: Final = RENEW_SECONDS / 86_400
"""Until a certificate ends."""

_GIGABYTE: Final = 1e9
_DAY_SECONDS: Final = 86_400
_UNSYNCHRONIZED: Final = 5
"""TIME_ERROR of adjtimex(2)."""


def inspect_service(given: ServiceFiles) -> Iterator[Finding]:
    """Look at open files and disk, and at certificate, endpoints and clock as far as is given."""
    yield _looked("open files", _look_at_open_files)
    yield _looked("disk", lambda: _look_at_disks(given))
    if given.certificate_path is not None or given.key_path is not None:
        yield _looked(
            "certificate", lambda: _look_at_certificate(given.certificate_path, given.key_path)
        )
    ages: dict[str, float] = {}
    for number, url in enumerate(given.rpc_urls, 1):
        yield _looked(f"endpoint {number}", partial(_look_at_endpoint, url, given, ages))
    yield _looked("clock", lambda: _look_at_clock(ages))


def _looked(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding("node", name, True, look())
    except ChainkitError as error:
        return Finding("node", name, False, str(error))


def _look_at_open_files() -> str:
    wanted = StrangerLimits().connections
    soft, hard = open_files()
    _, fitting = fit(wanted, soft, hard)
    if fitting < wanted:
        raise ConfigurationError(
            "limit of open files",
            f"at least {wanted + OTHER_FILES}, for {wanted} connections",
            hard,
            "of this shell; for the service, LimitNOFILE=20000 of systemd",
        )
    return f"room for {wanted} connections in this shell; the service has a limit of its own"


def _look_at_disks(given: ServiceFiles) -> str:
    """Look at the disks of the SQLite file and the record, or else at that of this folder."""
    found = None if given.database is None else parse_location(given.database)
    files = [path for path in (found, given.record_path) if isinstance(path, Path)]
    folders = dict.fromkeys(path.absolute().parent for path in files) or [Path.cwd()]
    return "; ".join(map(_look_at_disk, folders))


def _look_at_disk(folder: Path) -> str:
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        raise ConfigurationError(str(folder), "a folder", error.strerror or error) from error
    size = f"{usage.free / _GIGABYTE:.1f} of {usage.total / _GIGABYTE:.1f} GB"
    if usage.free < LEAST_FREE * usage.total:
        raise ConfigurationError(f"disk of {folder}", f"{LEAST_FREE:.0%} free", size)
    return f"{size} free for {folder}"


def _look_at_certificate(certificate: Path | None, key: Path | None) -> str:
    if certificate is None or key is None:
        missing = "--tls-certificate" if certificate is None else "--tls-key"
        raise ConfigurationError(missing, "certificate and key together", "one of them")
    files = CertificateFiles(certificate, key)
    ServerCertificate(files)
    state = check_certificate(files, None)
    if state.fault is not None:
        raise ConfigurationError(
            "certificate", "one that is valid now", state.fault, str(certificate)
        )
    days = (state.ends_at - now()) / _DAY_SECONDS
    if days < LEAST_DAYS:
        expected = f"{LEAST_DAYS:g} days until it ends"
        raise ConfigurationError("certificate", expected, f"{days:.1f}", str(certificate))
    return f"{days:.0f} days until it ends; of {', '.join(state.names) or 'no name'}"


def _look_at_endpoint(url: str, given: ServiceFiles, ages: dict[str, float]) -> str:
    """Ask an endpoint once, and add the age of its newest block in seconds, by its name."""
    retry = RetryPolicy(attempts=1)
    endpoint = Endpoint.connect(url, 5.0, connect_timeout_seconds=2.0, retry=retry)
    deployment = _deployment(given.deployment_path)
    head = endpoint.head() if deployment is None else check_deployment(endpoint, deployment)
    age = ages[endpoint.name] = now() - head.timestamp
    contracts = "" if deployment is None else ", the deployment's contracts are there"
    return f"{endpoint.name}: block {head.number}, {age:.0f} s old{contracts}"


def _deployment(path: Path | None) -> FollowedDeployment | None:
    return None if path is None else read_followed_deployment(path)


def _look_at_clock(ages: dict[str, float]) -> str:
    """Compare with the youngest block that an endpoint has, and ask the kernel."""
    name, age = min(ages.items(), key=lambda each: each[1], default=("", 0.0))
    expected = f"one within {MOST_SECONDS_APART:g} s of the newest block at {name}"
    if age > MOST_SECONDS_APART:
        place = "unless the chain stands still"
        raise ConfigurationError("clock", expected, f"one {age:.0f} s ahead", place)
    if age < -MOST_SECONDS_APART:
        raise ConfigurationError("clock", expected, f"one {-age:.0f} s behind")
    if (state := kernel_state()) == _UNSYNCHRONIZED:
        raise ConfigurationError("clock", "one that NTP keeps right", "one that nothing keeps")
    if name:
        return f"{age:.0f} s after the newest block at {name}"
    return "not compared: give --rpc" if state is None else "kept right by NTP"


def now() -> float:
    """Return seconds since 1970, by the clock that is looked at."""
    return time.time()


def kernel_state() -> int | None:
    """Return the state of the kernel's clock, as adjtimex(2) has it; None where it has none."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024))
    except (OSError, AttributeError):
        return None
    return state if isinstance(state, int) and state >= 0 else None
