import os
import tarfile
from pathlib import Path

from chainkit_jobs.spark.environment import write_archive

LATER = 2_000_000_000


def copied(folder: Path, names: list[str], content: bytes = b"1") -> Path:
    """Write the same files, in an order of its own and into folders of another time."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_000, 1_000))
    return folder


def archive_of(folder: Path, name: str) -> bytes:
    archive = folder.parent / f"{name}.tar.gz"
    write_archive(folder, archive)
    return archive.read_bytes()


def test_write_archive__copied_again_later__gives_the_same_bytes(tmp_path: Path) -> None:
    first = copied(tmp_path / "first", ["a/b.py", "a/c.py", "d.py"])
    second = copied(tmp_path / "second", ["d.py", "a/c.py", "a/b.py"])
    for folder in (second, second / "a"):
        os.utime(folder, (LATER, LATER))

    assert archive_of(first, "one") == archive_of(second, "other")


def test_write_archive__another_content__gives_other_bytes_that_keep_the_files_times(
    tmp_path: Path,
) -> None:
    first = copied(tmp_path / "first", ["a/b.py"])
    second = copied(tmp_path / "second", ["a/b.py"], b"2")

    assert archive_of(first, "one") != archive_of(second, "other")
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        assert tar.getmember("./a/b.py").mtime == 1_000
