"""CPU time and memory of a process and its children: Linux' own account, in /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chainkit.errors import ConfigurationError

_PROC: Final = Path("/proc")
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KIBIBYTES_PER_MEBIBYTE: Final = 1024

# Fields of /proc/PID/stat after the command's name, which may itself hold blanks.
_PARENT: Final = 1
_OWN_TIMES: Final = slice(11, 13)
_ALL_TIMES: Final = slice(11, 15)


def own_cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that run, all threads included."""
    return time.process_time() + sum(map(process_cpu_seconds, descendants(os.getpid())))


def server_cpu_seconds(pid: int) -> float:
    """Return the CPU time of another process, and of all children that it has or had."""
    processes = (pid, *descendants(pid))
    return sum(_ticks(each, _ALL_TIMES) for each in processes) / _TICKS_PER_SECOND


def own_peak_mebibytes() -> float:
    """Return the greatest resident memory of this process, and of its children that run, summed.

    Pages that two of them share count twice. It is the kernel's mark of this program alone:
    getrusage would also count what its parent held when it was started.
    """
    return sum(_peak_kibibytes(pid) for pid in (os.getpid(), *descendants(os.getpid()))) / (
        _KIBIBYTES_PER_MEBIBYTE
    )


def process_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process without its children, 0 where it has ended."""
    return _ticks(pid, _OWN_TIMES) / _TICKS_PER_SECOND


def process_mebibytes(pid: int) -> float:
    """Return the resident memory of a process, with what it shares; 0 where it has ended."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * _PAGE_BYTES / 2**20


def server_mebibytes(pid: int) -> float:
    """Return the resident memory of a process and its children, summed, with what they share."""
    return sum(map(process_mebibytes, (pid, *descendants(pid))))


def server_anonymous_mebibytes(pid: int) -> float:
    """Return of this memory what is no file's: the system cannot drop it and read it again."""
    kibibytes = (_status_kibibytes(each, "RssAnon:") for each in (pid, *descendants(pid)))
    return sum(kibibytes) / _KIBIBYTES_PER_MEBIBYTE


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process started, and those that these did."""
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        child = int(path.parent.name)
        if fields := _stat(child):
            children.setdefault(int(fields[_PARENT]), []).append(child)
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        yield child
        waiting += children.get(child, ())


def _ticks(pid: int, times: slice) -> int:
    return sum(int(field) for field in _stat(pid)[times])


def _stat(pid: int) -> list[str]:
    """Return a process' state, or nothing where it has ended meanwhile."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _peak_kibibytes(pid: int) -> int:
    return _status_kibibytes(pid, "VmHWM:")


def _status_kibibytes(pid: int, field: str) -> int:
    """Return a field of a process' status, 0 where it has ended."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith(field):
            return int(line.split()[1])
        if line.startswith("State:") and line.split()[1] == "Z":
            # It has ended, and nobody has asked for its exit code yet.
            return 0
    raise ConfigurationError(f"process {pid}", f"{field} in /proc (Linux)", "none")
