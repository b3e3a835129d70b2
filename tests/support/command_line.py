"""The `chainkit` command, run in this process: its exit code, and its outputs."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from eth_account import Account

from chainkit.cli.main import main

PASSWORD = "for tests only"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """The JSON that --json printed."""
        return json.loads(self.out)


def run(*arguments: object, typed: str = "") -> Outcome:
    """Run ``chainkit`` with arguments, through its own error handling; ``typed`` is its input."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["chainkit", *map(str, arguments)]
    code: object = 0
    with (
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def write_keystore(folder: Path, secret: bytes) -> list[str]:
    """Write a keystore and its password; return the options that name them."""
    keystore, password = folder / "key.json", folder / "password.txt"
    content = Account.encrypt(secret, PASSWORD, kdf="pbkdf2", iterations=1000)
    keystore.write_text(json.dumps(content))
    password.write_text(PASSWORD + "\n")
    return ["--keystore", str(keystore), "--password-file", str(password)]
