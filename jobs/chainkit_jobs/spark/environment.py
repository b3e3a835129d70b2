"""The Python environment as one archive for workers that have none: interpreter and packages.

Unpacked, it runs from wherever it lies::

    bin/python          starts lib's interpreter, which finds all else from its own place
    bin/python3.11      the interpreter
    lib/                its standard library and, where it is shared, libpython
    packages/           chainkit and what chainkit[audit] needs

PySpark is left out: Spark brings its own to each worker, in the version of the cluster.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pyspark.find_spark_home import _find_spark_home

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError, StoreError

_OWN_PACKAGES: Final = ("chainkit", "chainkit_jobs")
_OF_SPARK: Final = frozenset({"pyspark", "py4j"})

_UNUSED_LIBRARY: Final = frozenset(
    {"site-packages", "dist-packages", "test", "idlelib", "turtledemo", "tkinter", "ensurepip"}
)
_UNUSED_FOLDERS: Final = frozenset({"__pycache__", "tests", "include"})
_COMPRESSION: Final = 1
"""gzip's fastest level: a network inside a cluster is faster than its higher levels."""

_LAUNCHER: Final = """\
#!/bin/sh
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export LD_LIBRARY_PATH="$root/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export PYTHONPATH="$root/packages${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONNOUSERSITE=1
exec "$root/bin/{program}" "$@"
"""

_CHECK: Final = """\
import importlib, pkgutil, re, sys
import chainkit_jobs
for module in pkgutil.walk_packages(chainkit_jobs.__path__, "chainkit_jobs."):
    importlib.import_module(module.name)
own = (sys.prefix, *sys.argv[1:])
with open("/proc/self/maps") as maps:
    mapped = set(re.findall(r"/\\S*libpython\\S*", maps.read()))
files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
print(*sorted(f for f in files | mapped if f and f.startswith("/") and not f.startswith(own)))
"""


def pack_environment(archive: Path) -> int:
    """Write this interpreter, chainkit and the packages of chainkit[audit]; return the size.

    The same installation gives the same bytes. ``archive`` ends in .tar.gz, which Spark unpacks.
    The archive fits workers of the same system and processor whose C library is not older. Raises
    StoreError where the archive exists or cannot be written, ConfigurationError where this
    environment cannot be moved to another machine.
    """
    if archive.exists():
        raise StoreError(f"output {archive}", None, "already exists")
    if not archive.name.endswith(".tar.gz"):
        raise ConfigurationError("--out", "a name that ends in .tar.gz", archive.name)
    if sys.platform != "linux":
        raise ConfigurationError("environment", "Linux, as on the workers", sys.platform)
    try:
        with (
            moved_into_place(archive) as partial,
            tempfile.TemporaryDirectory(prefix="chainkit-environment-") as folder,
        ):
            stage = Path(folder).resolve()
            _copy_interpreter(stage)
            _copy_packages(stage / "packages")
            _check_moved(stage)
            write_archive(stage, partial)
    except OSError as error:
        subject = f"output {archive}"
        raise StoreError(subject, "a file that can be written", error.strerror) from error
    return archive.stat().st_size


def _copy_interpreter(stage: Path) -> None:
    program = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    (stage / "bin").mkdir()
    shutil.copy2(program, stage / "bin" / program.name)
    launcher = stage / "bin" / "python"
    launcher.write_text(_LAUNCHER.format(program=program.name))
    launcher.chmod(0o755)
    os.utime(launcher, (0, 0))
    library = Path(sysconfig.get_path("stdlib"))
    ignored = shutil.ignore_patterns(*_UNUSED_LIBRARY, "__pycache__", "config-*", "*.a")
    shutil.copytree(library, stage / "lib" / library.name, ignore=ignored)
    # If libpython is built in, as in Debian, or is elsewhere, _check_moved decides.
    shared = library.parent / str(sysconfig.get_config_var("INSTSONAME"))
    if shared.is_file():
        shutil.copy2(shared, stage / "lib" / shared.name)


def _copy_packages(target: Path) -> None:
    for name in _OWN_PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.submodule_search_locations is not None
        # Not by the distribution's list of files: a clone's installation lists none of them.
        [source] = spec.submodule_search_locations
        shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for package in needed_distributions():
        if package.files is None:
            expected = "installed by pip or uv, with its list of files"
            raise ConfigurationError(f"package {package.name}", expected, "no list")
        for file in package.files:
            # Names that begin with .. are programs, which no worker starts.
            if file.parts[0] == ".." or _UNUSED_FOLDERS & set(file.parts) or file.suffix == ".pth":
                continue
            copy = target / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(str(file.locate())), copy)


def needed_distributions() -> list[Distribution]:
    """Return the installed packages that chainkit[audit] needs, sorted, without PySpark's.

    Raises ConfigurationError where one is missing.
    """
    found = packages_behind(distribution("chainkit"), {"audit"}, without=_OF_SPARK)
    return [found[name] for name in sorted(found)]


def packages_behind(
    package: Distribution, extras: Collection[str], without: Collection[str] = ()
) -> dict[str, Distribution]:
    """Return the installed packages that a package needs with extras, by name, without itself.

    ``without`` names packages that are left out, with all that only they need. Raises
    ConfigurationError where a package is missing.
    """
    itself = canonicalize_name(package.name)
    found: dict[str, Distribution] = {itself: package}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [*_requirements(package, frozenset(extras))]
    while waiting:
        requirement = waiting.pop()
        name, more = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name in without or (name, more) in seen:
            continue
        seen.add((name, more))
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError as error:
                raise ConfigurationError("environment", f"the package {name}", "none") from error
        waiting.extend(_requirements(found[name], more))
    del found[itself]
    return found


def _requirements(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for line in package.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _check_moved(stage: Path) -> None:
    """Prove that the copy imports every job, and nothing from the original place."""
    zips = sorted(str(path) for path in Path(_find_spark_home(), "python", "lib").glob("*.zip"))
    command = [str(stage / "bin" / "python"), "-c", _CHECK, *zips]
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(zips)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    # A separate home: matplotlib leaves a cache there, which is no part of the archive.
    with tempfile.TemporaryDirectory(prefix="chainkit-environment-") as home:
        environment["HOME"] = home
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home)
    expected = "an interpreter and packages that run from another place"
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise ConfigurationError("environment", expected, reason or done.returncode)
    if outside := done.stdout.split():
        raise ConfigurationError("environment", expected, f"one that needs {outside[0]}")


def write_archive(folder: Path, archive: Path) -> None:
    """Write a folder as .tar.gz: files of the same content and time give the same bytes.

    Raises OSError where the archive cannot be written.
    """
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        tar.add(folder, arcname=".", filter=_reproducible)


def _reproducible(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    if member.isdir():
        # A folder's time is that of the copy. A file's time stays: Python finds stale bytecode by
        # it.
        member.mtime = 0
    return member
