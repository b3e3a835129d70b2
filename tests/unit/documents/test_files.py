import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from chainkit.documents.files import (
    moved_into_place,
    open_regular,
    read_regular,
    replace_file,
    unreadable,
    write_new,
)
from chainkit.errors import ConfigurationError, StoreError

Write = Callable[[Path, bytes, str], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared" / "proposal.json"


@pytest.fixture(autouse=True)
def _folder(path: Path) -> None:
    path.parent.mkdir()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file that lies elsewhere, and that links could lead to."""
    found = tmp_path / "council.json"
    found.write_bytes(b"mine")
    return found


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_read__up_to_the_limit__is_the_content(path: Path) -> None:
    path.write_bytes(b"12345")

    assert read_regular(path, "file", 5) == b"12345"


def test_read__one_byte_more__is_refused(path: Path) -> None:
    path.write_bytes(b"123456")

    with pytest.raises(ConfigurationError, match="file: expected at most 5 bytes, got more"):
        read_regular(path, "file", 5)


@pytest.mark.parametrize("follows_link", [True, False])
def test_open__pipe_that_nobody_writes_to__is_refused_at_once(
    path: Path, follows_link: bool
) -> None:
    os.mkfifo(path)

    with pytest.raises(ConfigurationError, match="got a pipe or a device"):
        open_regular(path, "file", follows_link)


def test_open__device_without_end__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got a pipe or a device"):
        open_regular(Path("/dev/zero"), "file")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError(2, "Failed to open 'x'. Detail: [errno 2] No such"), "file x does not"),
        (PermissionError(13, "Failed to open 'x'. Detail: [errno 13]"), "got Permission denied"),
        (OSError("the file is no Parquet"), "got the file is no Parquet"),
        (ValueError(), "got ValueError"),
    ],
)
def test_unreadable__error_of_a_library__has_no_number_of_an_error(
    error: Exception, told: str
) -> None:
    said = str(unreadable(StoreError, "file x", error))

    assert told in said
    assert "rrno" not in said


def test_open__folder_and_nothing__say_so(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="got a folder"):
        open_regular(path.parent, "file")
    with pytest.raises(ConfigurationError, match="does not exist"):
        open_regular(path, "file")


def test_open__name_that_no_file_has__is_no_other_error() -> None:
    with pytest.raises(ConfigurationError, match="null"):
        open_regular(Path("a\0b"), "file")


def test_open__link_of_the_reader__is_followed_unless_strangers_lay_there(
    path: Path, mine: Path
) -> None:
    path.symlink_to(mine)

    assert read_regular(path, "file", 9) == b"mine"
    with pytest.raises(ConfigurationError, match="no link"):
        open_regular(path, "file", follows_link=False)


def test_write_new__where_there_is_nothing__is_as_any_new_file(path: Path) -> None:
    other = path.with_name("other")
    other.touch()

    write_new(path, b"new", "file")

    assert (path.read_bytes(), mode(path)) == (b"new", mode(other))
    assert names(path.parent) == ["other", "proposal.json"]


def test_write_new__over_a_file__leaves_it(path: Path) -> None:
    path.write_bytes(b"old")

    with pytest.raises(ConfigurationError, match="already exists"):
        write_new(path, b"new", "file")

    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("exists", [True, False])
def test_write_new__link_in_its_place__writes_through_none(
    path: Path, mine: Path, exists: bool
) -> None:
    target = mine if exists else mine.with_name("nothing yet")
    path.symlink_to(target)

    with pytest.raises(ConfigurationError, match="already exists"):
        write_new(path, b"new", "file")

    assert names(mine.parent) == ["council.json", "shared"]
    assert mine.read_bytes() == b"mine"


def test_replace__file__is_the_new_one_alone(path: Path) -> None:
    path.write_bytes(b"old and longer")

    replace_file(path, b"new", "file")

    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["proposal.json"]


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666, 0o755])
def test_replace__file__keeps_its_permissions(path: Path, permissions: int) -> None:
    path.write_bytes(b"old")
    path.chmod(permissions)

    replace_file(path, b"new", "file")

    assert mode(path) == permissions


def test_replace__read_only_file__leaves_it(path: Path) -> None:
    path.write_bytes(b"old")
    path.chmod(0o444)

    with pytest.raises(ConfigurationError, match="a writable file, got a read-only one"):
        replace_file(path, b"new", "file")

    assert (path.read_bytes(), mode(path)) == (b"old", 0o444)


def test_replace__link__is_refused_and_its_target_left(path: Path, mine: Path) -> None:
    path.symlink_to(mine)

    with pytest.raises(ConfigurationError, match="a regular file to write over, got a link"):
        replace_file(path, b"new", "file")

    assert (mine.read_bytes(), path.is_symlink()) == (b"mine", True)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_replace__no_file__is_refused(path: Path, make: Callable[[Path], None]) -> None:
    make(path)

    with pytest.raises(ConfigurationError, match="got another kind of file"):
        replace_file(path, b"new", "file")


def test_replace__file_that_is_gone__says_so(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a writable file, got No such file"):
        replace_file(path, b"new", "file")


def test_replace__links_laid_where_earlier_drafts_went__are_left(path: Path, mine: Path) -> None:
    path.write_bytes(b"old")
    laid = [path.with_name(name) for name in (".proposal.json.draft", "proposal.json.upgraded")]
    for link in laid:
        link.symlink_to(mine)

    replace_file(path, b"new", "file")

    assert (path.read_bytes(), path.is_symlink()) == (b"new", False)
    assert mine.read_bytes() == b"mine"


def test_replace__name_of_the_draft_guessed__writes_through_no_link(
    path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"old")
    monkeypatch.setattr("chainkit.documents.files.secrets.token_hex", lambda length: "guessed")
    path.with_name(".guessed.partial").symlink_to(mine)

    with pytest.raises(ConfigurationError, match="File exists"):
        replace_file(path, b"new", "file")

    assert (path.read_bytes(), mine.read_bytes()) == (b"old", b"mine")


@pytest.mark.parametrize("step", ["permissions", "replace"])
def test_replace__interrupted_by_the_disk__leaves_the_old_one_and_no_draft(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path.write_bytes(b"old")
    if step == "replace":
        monkeypatch.setattr(Path, "replace", full)
    else:
        monkeypatch.setattr("chainkit.documents.files.os.fchmod", full)
        path.chmod(0o644)

    with pytest.raises(ConfigurationError, match="No space left"):
        replace_file(path, b"new", "file")

    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["proposal.json"]


@pytest.mark.parametrize("write", [write_new, replace_file])
def test_write__longest_name_that_a_file_has__is_written(path: Path, write: Write) -> None:
    longest = path.with_name("n" * 255)
    if write is replace_file:
        longest.write_bytes(b"old")

    write(longest, b"new", "file")

    assert longest.read_bytes() == b"new"


def test_move_into_place__written_file__replaces_the_old_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result"
    path.parent.mkdir()
    path.write_text("old")

    with moved_into_place(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("is_folder", [False, True])
def test_move_into_place__error_while_writing__leaves_nothing(
    tmp_path: Path, is_folder: bool
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()

    with pytest.raises(ZeroDivisionError), moved_into_place(folder / "result") as partial:
        if is_folder:
            partial.mkdir()
        (partial / "part" if is_folder else partial).write_text("half")
        raise ZeroDivisionError

    assert not list(folder.iterdir())


def test_move_into_place__folder_over_a_full_folder__is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    (folder / "result").mkdir(parents=True)
    (folder / "result" / "kept").touch()

    with pytest.raises(OSError), moved_into_place(folder / "result") as partial:
        partial.mkdir()

    assert [each.name for each in folder.rglob("*")] == ["result", "kept"]
