"""`chainkit key` before a terminal, and a keystore that opens at once."""

from __future__ import annotations

import traceback
from typing import Any
from unittest import mock

from click.testing import CliRunner, Result
from eth_account import Account

from chainkit.cli.key import key
from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey
from support.vectors import load

SECRET = bytes(range(1, 33))
SIGNING_KEY = SigningKey(SECRET)
PASSWORD = "correct horse"
ETHERS = load("keystores")

# One round instead of a second of work: what is tested is not the cost of guessing.
KEYSTORE: dict[str, Any] = Account.encrypt(SECRET, PASSWORD, kdf="pbkdf2", iterations=1)


def run(*arguments: object, typed: str | None = None, **options: Any) -> Result:
    """Run `chainkit key` before a terminal where something is typed."""
    with mock.patch("chainkit.terminal.passwords._has_terminal", return_value=typed is not None):
        words = [str(argument) for argument in arguments]
        return CliRunner(**options).invoke(key, words, input=typed)


def refusal_of(result: Result) -> str:
    assert isinstance(result.exception, ConfigurationError), result.exception
    return str(result.exception)


def everything_said(result: Result) -> str:
    """The output, and the text that a log of the exception would print."""
    trace = traceback.format_exception(result.exception) if result.exception else []
    return result.output + "".join(trace)


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in KEYSTORE.items() if name != field}


def with_crypto(**changes: Any) -> dict[str, Any]:
    return KEYSTORE | {"crypto": KEYSTORE["crypto"] | changes}


def with_derivation(**changes: Any) -> dict[str, Any]:
    return with_crypto(kdfparams=KEYSTORE["crypto"]["kdfparams"] | changes)
