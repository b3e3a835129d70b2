"""Signs many digests beside the work of the step: in a process of its own.

A thread would wait for Python's lock after every single signature, so it would hardly run while
the step builds, parses and stores. The child gets the secret through a pipe, never as an argument
or in its environment, keeps nothing, and ends when the pipe is closed, however its parent ended.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, Final

from chainkit.errors import ChainkitError
from chainkit.signatures import SECRET_LENGTH, SIGNATURE_LENGTH, SigningKey
from chainkit.types import HASH_LENGTH

Signatures = Callable[[], Sequence[bytes]]
"""Waits for the signatures, 65 bytes each, in the order of the digests."""

_COUNT_LENGTH: Final = 4
_MODULE: Final = "chainkit_indexer.signing"
_FEW: Final = 32
"""Digests that are signed in place: the way to the child and back would take longer, and at the
head of the chain that time is latency."""


class SignerFailed(ChainkitError):
    """The signer's process ended before it answered."""


class Signer:
    """Signs in place, at once."""

    def __init__(self, key: SigningKey) -> None:
        """Sign with a node's key."""
        self._key = key
        self.public_key = key.public_key

    def sign(self, digests: Sequence[bytes]) -> Signatures:
        """Begin to sign 32-byte digests; call what is returned for the signatures."""
        signatures = [self._key.sign(digest) for digest in digests]
        return lambda: signatures

    def close(self) -> None:
        """Nothing is open."""


class SignerProcess(Signer):
    """Signs in a child process, batch after batch; ``sign`` returns at once."""

    def __init__(self, key: SigningKey) -> None:
        """Start the child, and hand it the secret."""
        super().__init__(key)
        self._child = subprocess.Popen(
            # -P, and no folder of anybody's: a module found there would be handed the secret.
            [sys.executable, "-P", "-m", _MODULE],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C reaches the whole foreground group: the step that runs must still end.
            start_new_session=True,
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._requests, self._answers = self._child.stdin, self._child.stdout
        self._pending: SimpleQueue[tuple[int, Future[Sequence[bytes]]] | None] = SimpleQueue()
        # Answers are taken at once: a child that cannot write would read no further request.
        self._reader = Thread(target=self._take_answers, name="signatures", daemon=True)
        self._reader.start()
        key.write_secret(self._requests)

    def sign(self, digests: Sequence[bytes]) -> Signatures:
        """Send digests to the child, unless there are only a few. Raises SignerFailed."""
        if len(digests) <= _FEW:
            return super().sign(digests)
        answer: Future[Sequence[bytes]] = Future()
        self._pending.put((len(digests), answer))
        try:
            self._requests.write(len(digests).to_bytes(_COUNT_LENGTH, "big") + b"".join(digests))
            self._requests.flush()
        except OSError:
            raise _failed("a closed pipe") from None
        return answer.result

    def close(self) -> None:
        """End the child."""
        self._pending.put(None)
        # What it was to be told matters no longer, nor that it may be gone.
        with suppress(OSError):
            self._requests.close()
        self._child.wait()
        self._reader.join()
        self._answers.close()

    def _take_answers(self) -> None:
        while (pending := self._pending.get()) is not None:
            count, answer = pending
            data = self._answers.read(count * SIGNATURE_LENGTH)
            if len(data) < count * SIGNATURE_LENGTH:
                answer.set_exception(_failed(f"{len(data)} bytes"))
            else:
                answer.set_result(_split(data, SIGNATURE_LENGTH))


def _failed(got: str) -> SignerFailed:
    return SignerFailed("signer's process", "signatures", got, "it ended")


def _split(data: bytes, length: int) -> list[bytes]:
    return [data[start : start + length] for start in range(0, len(data), length)]


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer batches until the pipe is closed: the child's whole life."""
    secret = requests.read(SECRET_LENGTH)
    if len(secret) < SECRET_LENGTH:
        return
    key = SigningKey(secret)
    while len(header := requests.read(_COUNT_LENGTH)) == _COUNT_LENGTH:
        count = int.from_bytes(header, "big")
        digests = _split(requests.read(count * HASH_LENGTH), HASH_LENGTH)
        answers.write(b"".join([key.sign(digest) for digest in digests]))
        answers.flush()


if __name__ == "__main__":
    # The parent ends it by closing the pipe; a signal to both must not end it before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # When the parent is gone, so is the reason to sign.
    with suppress(BrokenPipeError):
        _serve(sys.stdin.buffer, sys.stdout.buffer)
