"""Files in a folder that others may write to: no pipe or link of theirs is waited for or followed.

A pipe in a file's place would block its reader for ever, and a link would redirect a write into
another file of the writer.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from chainkit.errors import ChainkitError, ConfigurationError

_Error = TypeVar("_Error", bound=ChainkitError)

_NEW_FILE_MODE: Final = 0o666
"""Before the umask, as of any file."""
_PRIVATE_MODE: Final = 0o600
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def open_regular(path: Path, subject: str, follows_link: bool = True) -> BinaryIO:
    """Open a regular file for reading, never a folder, a pipe or a device.

    Raises ConfigurationError about ``subject`` for anything else.
    """
    expected = "a readable file" if follows_link else "a readable file, no link"
    try:
        # Not blocking: a pipe without a writer would block the reader.
        flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follows_link else os.O_NOFOLLOW)
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise unreadable(ConfigurationError, subject, error, expected) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    got = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise ConfigurationError(subject, expected, got)


def read_regular(path: Path, subject: str, most: int) -> bytes:
    """Return the content of a regular file of up to ``most`` bytes.

    Raises ConfigurationError about ``subject`` for anything else.
    """
    with open_regular(path, subject) as file:
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise unreadable(ConfigurationError, subject, error) from error
    if len(data) > most:
        raise ConfigurationError(subject, f"at most {most} bytes", "more")
    return data


def write_new(path: Path, data: bytes, subject: str, is_private: bool = False) -> None:
    """Write a file where there is none, not even a link that leads nowhere.

    Other users of the machine cannot read a private file. Raises ConfigurationError about
    ``subject`` where the file exists, or cannot be written.
    """
    try:
        _write(path, data, _PRIVATE_MODE if is_private else _NEW_FILE_MODE)
    except FileExistsError as error:
        raise ConfigurationError(subject, None, "already exists") from error
    except FileNotFoundError as error:
        expected = "a folder that takes new files"
        raise ConfigurationError(subject, expected, path.parent) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(subject, "a writable file", _reason(error)) from error


def replace_file(path: Path, data: bytes, subject: str) -> None:
    """Write a file in one step over its earlier state, and keep its permissions.

    Raises ConfigurationError about ``subject`` where the file is a link or no file, is read-only,
    or cannot be written.
    """
    check_replaceable(path, subject)
    try:
        found = path.lstat().st_mode
        with moved_into_place(path) as partial:
            _write(partial, data, _PRIVATE_MODE, mode=stat.S_IMODE(found))
    except OSError as error:
        raise ConfigurationError(subject, "a writable file", _reason(error)) from error


@contextmanager
def moved_into_place(path: Path) -> Iterator[Path]:
    """Yield a free name beside ``path``; the file or folder written there becomes ``path``.

    A reader sees the old state or the new one, never a part of it. An error leaves ``path``
    unchanged and no other file. Raises OSError where the result cannot be moved. Nothing is flushed
    to the disk here.
    """
    # No other program can place a file under a name that cannot be guessed.
    partial = path.with_name(f".{secrets.token_hex(16)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def check_replaceable(path: Path, subject: str) -> None:
    """Raise ConfigurationError where ``replace_file`` would, for the file now at the path."""
    try:
        found = path.lstat().st_mode
    except OSError as error:
        raise ConfigurationError(subject, "a writable file", _reason(error)) from error
    if not stat.S_ISREG(found):
        got = "a link" if stat.S_ISLNK(found) else "another kind of file"
        raise ConfigurationError(subject, "a regular file to write over", got)
    if not found & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(subject, "a writable file", "a read-only one")


def _write(path: Path, data: bytes, created: int, mode: int | None = None) -> None:
    """Create a whole file, or leave none; ``mode`` are its permissions."""
    descriptor = os.open(path, _NEW, created)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # A medium without permissions refuses to set them, even to their present values.
            if mode is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
                os.fchmod(descriptor, mode)
            file.write(data)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def unreadable(
    kind: type[_Error], subject: str, error: Exception, expected: str = "a readable file"
) -> _Error:
    """Return an error of a class with the reason why a file could not be read."""
    if isinstance(error, FileNotFoundError):
        return kind(subject, None, "does not exist")
    return kind(subject, expected, _reason(error))


def _reason(error: Exception) -> str:
    # Without the library's text: it repeats the number, and the path that is in the subject. A path
    # with a NUL is no OSError.
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else str(error) or type(error).__name__
