"""An account of Ape: a keyfile of its own, or a hardware wallet behind one of its plugins.

Ape is an extra, and takes seconds to load: this module imports Ape only when an account is opened.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from click.exceptions import Abort

from chainkit.council.signing.hashes import encode_transaction, typed_data_message
from chainkit.errors import ConfigurationError, InvalidSignature
from chainkit.extras import how_to_install
from chainkit.signatures import SIGNATURE_LENGTH, keccak256

_WORD: Final = 32


class ApeSigner:
    """Signs with an account that Ape knows by its alias; Ape asks for what it needs."""

    __slots__ = ("_account", "address", "label")

    def __init__(self, alias: str) -> None:
        """Find the account.

        Raises ConfigurationError where Ape is not installed, or has no such account.
        """
        self.label = f"Ape account {_shown(alias)}"
        with _kept_terminal():
            self._account = _load(self.label, alias)
            self.address = str(self._account.address)

    def __repr__(self) -> str:
        """Show the account's address, and no secret."""
        return f"ApeSigner({self.label}, {self.address})"

    def sign_typed_data(self, typed_data: Mapping[str, Any]) -> bytes:
        """Sign EIP-712 JSON; see ``Signer``."""
        # This class and not Ape's own: hardware wallets take header and body from this class as
        # well.
        message = typed_data_message(typed_data)
        signature = self._signed(lambda: self._account.sign_message(message))
        return self._bytes_of(signature, 27)

    def sign_transaction(self, fields: Mapping[str, Any]) -> bytes:
        """Sign an EIP-1559 transaction; see ``Signer``."""
        transaction = _ape_transaction(fields, self.address)
        signed = self._signed(lambda: self._account.sign_transaction(transaction))
        # Only the signature is taken from the answer: a plugin may have changed the fields.
        return encode_transaction(fields, self._bytes_of(signed.signature, 0))

    def _signed(self, sign: Callable[[], Any]) -> Any:
        with _kept_terminal():
            try:
                signed = sign()
            except Abort:
                raise  # at a prompt
            except Exception as error:
                # `from None`: plugins may keep secrets of their arguments in their tracebacks.
                got = f"{type(error).__name__}: {_shown(str(error))}"
                raise ConfigurationError(self.label, "a signature", got) from None
        if signed is None:
            raise ConfigurationError(self.label, "a signature", "none: it was declined")
        return signed

    def _bytes_of(self, signature: Any, offset: int) -> bytes:
        """Return R ‖ S ‖ V, whose V begins at ``offset``; plugins return V in either way."""
        v = int.from_bytes(signature.v, "big") if isinstance(signature.v, bytes) else signature.v
        r, s = bytes(signature.r).rjust(_WORD, b"\0"), bytes(signature.s).rjust(_WORD, b"\0")
        parity = v - 27 if v in (27, 28) else v
        if parity not in (0, 1) or len(r + s) != SIGNATURE_LENGTH - 1:
            got = f"V {v} and {len(r + s)} bytes"
            raise InvalidSignature(f"signature of {self.label}", "V 0, 1, 27 or 28", got)
        return r + s + bytes([parity + offset])


def _load(label: str, alias: str) -> Any:
    try:
        ape = importlib.import_module("ape")
    except ModuleNotFoundError as error:
        got = f"no package {error.name}: {how_to_install('contracts')}"
        raise ConfigurationError(label, "Ape to be installed", got) from None
    try:
        return ape.accounts.load(alias)
    except (KeyError, ValueError):
        expected = "one that `ape accounts list --all` names"
        raise ConfigurationError(label, expected, "none of that alias") from None


def _ape_transaction(fields: Mapping[str, Any], sender: str) -> Any:
    """Return a transaction as Ape's accounts take it.

    Ape itself would decode the call by ABIs that it has cached, and ask an endpoint for more: it
    would show a stranger's words. The command has shown the call; the hash identifies the call
    again.
    """
    target = {"to": "0x" + fields["to"].hex()} if "to" in fields else {}
    words = (
        f"transaction {fields['nonce']} of {sender} to {target.get('to', 'a new contract')} on "
        f"chain {fields['chainId']}: calldata keccak256 0x{keccak256(fields['data']).hex()}"
    )
    base = importlib.import_module("ape_ethereum.transactions").DynamicFeeTransaction
    members = {"__module__": __name__, "__str__": lambda _: words}
    shown: Any = type("ShownTransaction", (base,), members)
    return shown.model_validate({**fields, **target, "from": sender})


@contextlib.contextmanager
def _kept_terminal() -> Iterator[None]:
    """Keep Ape's output off standard output, which is a script's, and its hands off Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            yield
        finally:
            if is_main:
                signal.signal(signal.SIGINT, handler)


def _shown(text: str) -> str:
    """Return foreign text as one line that a terminal shows as it is."""
    shown = "".join(character if 0x20 <= ord(character) < 0x7F else " " for character in text)
    return " ".join(shown.split())
