"""Runs a command and measures what it takes: time, processor time and memory, children included."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.usage import descendants, process_cpu_seconds, process_mebibytes
from chainkit.errors import ChainkitError
from localnet.deployment import PROJECT
from localnet.process import end, end_with_parent, interruptions_deferred

_PAUSE_SECONDS: Final = 0.25
_LAST_LINES: Final = 5


class CommandFailed(ChainkitError):
    """A command that is measured ended with another exit code than it must."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command's output, and the time and memory that it took."""

    output: str
    seconds: float
    """Time of the wall clock, from its start to its end."""
    cpu_seconds: float
    """CPU time of the command and of its descendants that were seen at a look."""
    peak_mebibytes: float
    """The most memory that all of them held at once; pages that two share count twice."""
    own_peak_mebibytes: float = 0.0
    """The most that the command's process held, without its descendants."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    exit_codes: Sequence[int] = (0,),
    typed: str = "",
    pause_seconds: float = _PAUSE_SECONDS,
) -> Run:
    """Run a command in the project's folder; ``typed`` is a person's input.

    ``pause_seconds`` lie between two looks: a child that lives for less may not be seen.
    Raises CommandFailed for another exit code.
    """
    with tempfile.TemporaryFile("w+") as errors:
        with interruptions_deferred():
            started = time.perf_counter()
            process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=PROJECT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=end_with_parent,
            )
        try:
            with _Watch(process.pid, pause_seconds) as watch:
                output, _ = process.communicate(typed)
                seconds = time.perf_counter() - started
        finally:
            code = end(process)
        if code not in exit_codes:
            errors.seek(0)
            last = " ".join(errors.read().strip().splitlines()[-_LAST_LINES:])
            expected = "exit " + " or ".join(map(str, exit_codes))
            raise CommandFailed(" ".join(command[:4]), expected, code, last)
    return Run(output, seconds, watch.cpu_seconds, watch.peak_mebibytes, watch.own_peak_mebibytes)


@dataclass(slots=True)
class _Watch:
    """Looks at a process and its descendants again and again, on a thread of its own."""

    pid: int
    pause_seconds: float
    peak_mebibytes: float = 0.0
    own_peak_mebibytes: float = 0.0
    _cpu_seconds: dict[int, float] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> _Watch:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all of them, as it was when each was seen last."""
        return sum(self._cpu_seconds.values())

    def _look(self) -> None:
        while True:
            processes = [self.pid, *descendants(self.pid)]
            for pid in processes:
                spent = process_cpu_seconds(pid)
                self._cpu_seconds[pid] = max(spent, self._cpu_seconds.get(pid, 0.0))
            own, *others = map(process_mebibytes, processes)
            # Before a child is another program, it is in its parent's memory (vfork).
            others = [each for each in others if each != own]
            self.own_peak_mebibytes = max(self.own_peak_mebibytes, own)
            self.peak_mebibytes = max(self.peak_mebibytes, own + sum(others))
            if self._ended.wait(self.pause_seconds):
                return
