"""Passwords: from a file, a descriptor or the terminal.

A module of its own: opening a keystore imports the account's library, which a command that only
opens a database does without.
"""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

import click

from chainkit.documents.files import unreadable
from chainkit.errors import ConfigurationError


def read_password(path: Path | None, confirm: bool = False) -> str:
    """Return the password in a file, or the typed password, typed twice where it is new.

    Raises ConfigurationError where there is neither a file nor a terminal.
    """
    if path is None:
        if not _has_terminal():
            raise ConfigurationError("password", "a terminal or --password-file", "neither")
        # To standard error: a script reads only the answer on standard output.
        typed: str = click.prompt(
            "Password", hide_input=True, confirmation_prompt=confirm, err=True
        )
        return typed
    subject = f"password file {path}"
    try:
        password = _password(path.read_bytes(), subject)
    except OSError as error:
        raise unreadable(ConfigurationError, subject, error) from error
    if confirm and not password:
        raise ConfigurationError(subject, "a password", "an empty file")
    return password


def password_from(descriptor: int) -> str:
    """Return the password that comes through a file descriptor, which is closed afterwards.

    Raises ConfigurationError.
    """
    subject = f"--password-fd {descriptor}"
    try:
        with os.fdopen(descriptor, "rb") as file:
            return _password(file.read(), subject)
    except OSError as error:
        expected = "a descriptor open for reading"
        raise ConfigurationError(subject, expected, error.strerror) from error


def unmarked(data: bytes) -> bytes:
    """Return a file's bytes without the byte order mark that some editors set before UTF-8."""
    return data.removeprefix(codecs.BOM_UTF8)


def _has_terminal() -> bool:
    """Return whether a password can be typed unseen: the terminal need not be standard input."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return sys.stdin is not None and sys.stdin.isatty()
    return True


def _password(data: bytes, subject: str) -> str:
    try:
        return unmarked(data).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(subject, "UTF-8 text", "other bytes") from None
