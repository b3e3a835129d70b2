"""Breaks the project on purpose, in copies of it, to see whether its tests notice.

Mutants of contracts, planted bugs and the mutations of demands are changes to one file each.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final, Protocol, Self, TypeVar

from chainkit.errors import ConfigurationError

ROOT: Final = Path(__file__).parents[1]
WORKERS: Final = 2
NOT_RUN: Final = 125
"""Exit code for tests that could not be compiled, or did not end in time."""

_TIMEOUT_SECONDS: Final = 600
_LINKED: Final = ("node_modules", ".cache/bin", ".cache/solcx")
_IMPORTED: Final = (
    *("src", "indexer", "node", "gateway", "client", "jobs", "backups"),
    *("tests", "."),
)
# Nothing of what a suite shows depends on the optimizer, which takes most of a build's time.
_FORGE_SETTINGS: Final = {
    "FOUNDRY_FUZZ_RUNS": "32",
    "FOUNDRY_INVARIANT_DEPTH": "64",
    "FOUNDRY_INVARIANT_RUNS": "4",
    "FOUNDRY_OPTIMIZER": "false",
}
# forge and Hypothesis would try first what failed before, with another change.
_REMEMBERED: Final = ("forge/fuzz", "forge/invariant", "hypothesis")
_MLS_ENGINE: Final = "client/mls_engine/"

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Change(Protocol):
    """A change to one file that some test should notice."""

    @property
    def file(self) -> str:
        """Path from the project's root."""

    def applied_to(self, source: str) -> str:
        """Return the file's text with the change."""


@dataclass(frozen=True)
class Break:
    """A change of a text that occurs once in a file."""

    file: str
    """Path from the project's root."""
    text: str
    replacement: str

    @property
    def digest(self) -> str:
        """Eight digits that differ for another break."""
        parts = "\0".join((self.file, self.text, self.replacement))
        return hashlib.sha256(parts.encode()).hexdigest()[:8]

    def applied_to(self, source: str) -> str:
        """Return the file's text with the change.

        Raises ConfigurationError where the text does not occur exactly once, or stays the same.
        """
        count = source.count(self.text)
        if count != 1 or self.text == self.replacement:
            expected = "the text of a break once, and another instead"
            raise ConfigurationError(self.file, expected, str(count))
        return source.replace(self.text, self.replacement)


@dataclass(frozen=True)
class Ended:
    """The output of a command, and its exit code."""

    status: int
    printed: str
    errors: str = ""

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.printed + self.errors


class Copy:
    """A copy of the project, in which one change at a time is tried."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        """Copy what Git knows or would add, and link what is large and never changed."""
        self.folder = folder
        self._has_engine = False
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, folder / name)
        (folder / ".cache").mkdir()
        for name in _LINKED:
            (folder / name).symlink_to((root / name).resolve())

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Change one file within the block. Raises the error of a change that does not apply."""
        path = self.folder / change.file
        original = path.read_text(encoding="utf-8")
        path.write_text(change.applied_to(original), encoding="utf-8")
        self._has_engine &= not change.file.startswith(_MLS_ENGINE)
        try:
            yield
        finally:
            path.write_text(original, encoding="utf-8")
            self._has_engine &= not change.file.startswith(_MLS_ENGINE)

    def forge(self, *options: str, **settings: str) -> Ended:
        """Run forge's tests, with short fuzz and invariant runs."""
        return self.run("forge", "test", *options, **_FORGE_SETTINGS, **settings)

    def ape(self, *options: str) -> Ended:
        """Run tests of the contracts through Ape."""
        # Ape keeps stale bytecode where only an imported file changed.
        compiled = self.run("ape", "compile", "--force")
        if compiled.status != 0:
            return replace(compiled, status=NOT_RUN)
        return self.pytest("-p", "ape.pytest.plugin", *options)

    def pytest(self, *options: str) -> Ended:
        """Run tests in Python."""
        return self.python("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *options)

    def python(self, *arguments: str, **settings: str) -> Ended:
        """Run Python with the copy's packages. Raises ConfigurationError without an MLS engine."""
        build = self.folder / _MLS_ENGINE / "build.mjs"
        if not self._has_engine and build.exists():
            # git does not track the bundle; its digest would refuse a changed bundle before any
            # test does.
            built = self.run("node", str(build), "--pin")
            if built.status != 0:
                raise ConfigurationError("MLS engine", "to be built", built.output[-2000:])
            self._has_engine = True
        return self.run("python", *arguments, **settings)

    def run(self, *command: str, **settings: str) -> Ended:
        """Run a command, in a session of its own: if it hangs, all its processes are ended."""
        cache = self.folder / ".cache"
        for name in _REMEMBERED:
            shutil.rmtree(cache / name, ignore_errors=True)
        own = {
            "APE_DATA_FOLDER": str(cache / "ape"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(cache / "hypothesis"),
            # A file that changes twice in a second would keep its earlier compiled code.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(str(self.folder / name) for name in _IMPORTED),
            "SOLCX_BINARY_PATH": str(cache / "solcx"),
        }
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | own | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, errors = process.communicate(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Ended(NOT_RUN, "", f"no end within {_TIMEOUT_SECONDS} s")
        return Ended(process.returncode, printed, errors)


class Copies:
    """Several copies of the project, in which changes are tried at the same time."""

    def __init__(self, workers: int = WORKERS, root: Path = ROOT) -> None:
        """Copy the project for each worker; the copies are deleted at the end of a `with`."""
        self._folder = TemporaryDirectory(prefix="breaking-")
        self._workers = workers
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(workers):
            self._free.put(Copy(Path(self._folder.name) / str(number), root))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def each(
        self, items: Iterable[Item], attempt: Callable[[Copy, Item], Answer]
    ) -> Iterator[Answer]:
        """Yield the answer of an attempt at each item, in order; the copies take turns."""

        def in_a_copy(item: Item) -> Answer:
            copy = self._free.get()
            try:
                return attempt(copy, item)
            finally:
                self._free.put(copy)

        pool = ThreadPoolExecutor(max_workers=self._workers)
        try:
            yield from pool.map(in_a_copy, items)
        finally:
            pool.shutdown(cancel_futures=True)
