from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from chainkit.service.edge.folders import PREFIX, make_folder, remove_left_folders

# A process that becomes another program, as a service becomes Envoy's, and then waits.
PROGRAM = """
import os, sys
from chainkit.service.edge.folders import make_folder
print(make_folder(), flush=True)
os.execv(sys.executable, [sys.executable, "-c", "input()"])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_remove_left_folders__process_runs_and_is_killed__removes_it_only_then(
    folder: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
        text=True,
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        (path / "certificate.json").write_text("{}")
        remove_left_folders()
        assert (path / "certificate.json").exists()

        process.kill()
        process.wait()
        remove_left_folders()

    assert not path.exists()


def test_remove_left_folders__own_and_what_is_no_folder__stays(folder: Path) -> None:
    own, elsewhere = make_folder(), folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (folder / f"{PREFIX}link").symlink_to(elsewhere)
    (folder / f"{PREFIX}file").touch()

    remove_left_folders()

    assert own.exists() and own.name.startswith(PREFIX)
    assert (elsewhere / "file").exists()
    assert (folder / f"{PREFIX}file").exists()
