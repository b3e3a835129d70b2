"""The options of every command that signs: the choice of the account, each option spelled once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.council.safe import has_contract_form
from chainkit.council.signing import (
    PRIVATE_KEY_VARIABLE,
    ApeSigner,
    KeySigner,
    Signer,
    has_environment_key,
    take_environment_key,
)
from chainkit.documents.files import unreadable
from chainkit.errors import ConfigurationError
from chainkit.signatures import SIGNATURE_LENGTH
from chainkit.terminal.keystore import load_secret
from chainkit.terminal.options import (
    Option,
    gathered,
    keystore_option_for,
    password_option,
    several,
)

_STANDARD_OUTPUTS: Final = (1, 2)
_LONGEST_SIGNATURE_FILE: Final = 2**16
"""Most bytes of a signature: a contract's signature holds the signatures of its own owners."""
_WARNING: Final = (
    "warning: signing with a raw key from CHAINKIT_PRIVATE_KEY; other programs may have read it"
)


def _descriptor(
    _context: click.Context, _parameter: click.Parameter, number: int | None
) -> int | None:
    if number in _STANDARD_OUTPUTS:
        raise click.BadParameter(f"{number} is for what is printed")
    return number


def signer_options(whose: str) -> Option:
    """Return a decorator that adds options; the command takes ``signing``, a SignerOptions.

    None of them is required. ``whose`` key it is, in words, such as ``an owner``.
    """
    return several(
        keystore_option_for(f"Sign with the encrypted key (keystore v3) of {whose}."),
        password_option,
        click.option(
            "--password-fd",
            "password_descriptor",
            metavar="N",
            type=click.IntRange(min=0),
            callback=_descriptor,
            help="File descriptor that the keystore's password is read from, once.",
        ),
        click.option(
            "--account",
            "account_alias",
            metavar="ALIAS",
            help="Sign with an account of Ape: a keyfile, or a hardware wallet by a plugin.",
        ),
        gathered(SignerOptions, "signing"),
    )


@dataclass(frozen=True, slots=True)
class SignerOptions:
    """Which signer the command line and the environment name."""

    keystore_path: Path | None
    password_path: Path | None
    password_descriptor: int | None
    account_alias: str | None

    @property
    def named(self) -> tuple[str, ...]:
        """The chosen signers, by the option that names each."""
        named = {
            "--keystore (or CHAINKIT_KEYSTORE)": self.keystore_path is not None,
            "--account": self.account_alias is not None,
            PRIVATE_KEY_VARIABLE: has_environment_key(),
        }
        return tuple(name for name, is_named in named.items() if is_named)

    def require(self, option: str, *instead: str) -> None:
        """Raise UsageError unless exactly one signer is named, for ``option`` that needs one.

        ``instead`` are other options that would do.
        """
        named = self.named
        if not named:
            *first, last = "--keystore FILE", "--account ALIAS", *instead
            raise click.UsageError(f"{option} needs {', '.join(first)} or {last}")
        if len(named) > 1:
            raise click.UsageError(f"{option} needs one signer, got {' and '.join(named)}")
        if self.password_path is not None and self.password_descriptor is not None:
            given = "--password-file (or CHAINKIT_PASSWORD_FILE) and --password-fd"
            raise click.UsageError(f"one password is enough, got {given}")

    def open(self, chain_id: int) -> Signer:
        """Open the chosen signer for one chain; asks for a password where the signer needs one.

        Raises UsageError unless exactly one signer is chosen, and ConfigurationError where the
        signer cannot be used. A warning is printed for a key in the environment, and the key is
        removed from the environment.
        """
        self.require("signing")
        if self.account_alias is not None:
            return ApeSigner(self.account_alias)
        if self.keystore_path is not None:
            secret = load_secret(self.keystore_path, self.password_path, self.password_descriptor)
            return KeySigner("keystore", secret)
        signer = take_environment_key(chain_id)
        click.echo(_WARNING, err=True)
        return signer


def _signature(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> bytes | None:
    return None if text is None else read_signature(text)


signature_option = click.option(
    "--signature",
    "signature",
    metavar="HEX|FILE",
    callback=_signature,
    help="A signature made elsewhere, 65 bytes or a contract's, or a file that holds it in hex.",
)


def read_signature(text: str) -> bytes:
    """Return a signature made elsewhere: 65 bytes, with V 27 or 28 also where the input has 0 or 1.

    ``text`` is 0x and 130 hex digits, or more of a contract's, or names a file that holds them.
    Raises ConfigurationError. Only the signed hash shows its signer.
    """
    subject = "--signature"
    if not text.startswith("0x"):
        subject = f"--signature {text}"
        try:
            with Path(text).open("rb") as file:
                text = file.read(_LONGEST_SIGNATURE_FILE).decode("ascii", "replace").strip()
        except OSError as error:
            raise unreadable(ConfigurationError, subject, error) from error
    digits = 2 * SIGNATURE_LENGTH
    is_hex = re.fullmatch("(0x)?([0-9a-fA-F]{2})*", text) is not None
    signature = bytes.fromhex(text.removeprefix("0x")) if is_hex else b""
    if has_contract_form(signature):
        return signature
    if len(signature) != SIGNATURE_LENGTH:
        raise ConfigurationError(subject, f"0x and {digits} hex digits", "other text")
    if signature[-1] in (0, 1):
        return signature[:-1] + bytes([signature[-1] + 27])
    return signature
