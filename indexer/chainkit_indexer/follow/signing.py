"""Makes signed envelopes of payloads, in a process of its own, while the step works.

A thread would wait for Python's lock after every single signature, so it would hardly run while the
step parses and stores. The thread that waits for the child makes envelopes of unsent batches
meanwhile, so neither is idle while there is work.

The child gets the secret through a pipe, never as an argument or in its environment, stores
nothing, and ends when the pipe is closed, however its parent ended.
"""

from __future__ import annotations

import fcntl
import marshal
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import IO, Any, Final

from chainkit.errors import ChainkitError
from chainkit.protocol.envelope import (
    originator_envelope,
    quarantine_reason,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.signatures import SECRET_LENGTH, SIGNATURE_LENGTH, SigningKey
from chainkit.types import Log, PayloadEvent, TopicKind
from chainkit_indexer.types import PlacedEvent

Attest = Callable[[bytes, bytes], bytes]
"""Makes an OriginatorEnvelope of an unsigned one and a transaction hash."""

Outcome = bytes | str
"""A serialized OriginatorEnvelope, or why the payload must not be served."""

Outcomes = Callable[[], Sequence[Outcome]]
"""Waits for the results of the payloads, in their order."""

_LENGTH_BYTES: Final = 4
_PIPE_BYTES: Final = 2**20
"""More bytes than a page has: if a pipe is full, the sender waits for the child, or the child waits
for the thread that takes its answers, and this thread waits for Python's lock."""
_PATIENCE_SECONDS: Final = 60.0
"""Work under way takes less than one; after that the child hangs."""
_MODULE: Final = "chainkit_indexer.follow.signing"
_UNDER_WAY: Final = 24
"""Batches that the child has at a time: enough until the step sends more."""
_FEW: Final = 32
"""Payloads that are signed in place: the way to the child and back would take longer, and at the
head of the chain that time is latency."""


class SignerFailed(ChainkitError):
    """The signer's process ended, or hung, before it answered."""


class Signer:
    """Signs in place, at once."""

    def __init__(self, key: SigningKey) -> None:
        """Sign with a node's key."""
        self._attest: Attest = partial(sign_originator_envelope, key=key)

    def sign(self, events: Sequence[PlacedEvent]) -> Outcomes:
        """Begin to make payloads' envelopes (XIP-49 §3.2.1); the returned function gives them."""
        outcomes = [
            _outcome(event, timestamp, log.transaction_hash, self._attest)
            for event, log, timestamp in events
        ]
        return lambda: outcomes

    def close(self) -> None:
        """Nothing is open."""


class NoKey(Signer):
    """Leaves the place of the signature empty: for verification, without a private key."""

    def __init__(self) -> None:
        """Nothing is needed."""
        self._attest = partial(originator_envelope, signature=bytes(SIGNATURE_LENGTH))


@dataclass(frozen=True, slots=True)
class _Batch:
    events: Sequence[PlacedEvent]
    answer: Future[bytes | Sequence[Outcome]]
    """The child's result, or the result that was made in place."""


class SignerProcess(Signer):
    """Signs in a child process, batch after batch; ``sign`` returns at once.

    Only the thread that signs or waits writes requests. The thread that takes the answers never
    writes: a child that cannot write its answer would not read the next request.
    """

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
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            # Linux only, and no more than the administrator allows: a smaller pipe is slower.
            with suppress(OSError):
                for pipe in (self._requests, self._answers):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._pending: SimpleQueue[Future[bytes | Sequence[Outcome]] | None] = SimpleQueue()
        self._unsent: deque[_Batch] = deque()
        self._under_way = Semaphore(_UNDER_WAY)
        # Two threads may ask: which batch was sent first must be which answer is taken first.
        self._sending = Lock()
        self._reader = Thread(target=self._take_answers, name="signatures", daemon=True)
        self._reader.start()
        key.write_secret(self._requests)

    def sign(self, events: Sequence[PlacedEvent]) -> Outcomes:
        """Send payloads to the child, unless there are only a few. Raises SignerFailed."""
        if len(events) <= _FEW:
            return super().sign(events)
        batch = _Batch(events, Future())
        with self._sending:
            self._unsent.append(batch)
        self._send()
        return partial(self._outcomes, batch)

    def _outcomes(self, batch: _Batch) -> Sequence[Outcome]:
        while not batch.answer.done():
            self._send()
            with self._sending:
                last = self._unsent.pop() if self._unsent else None
            if last is None:
                break
            last.answer.set_result(super().sign(last.events)())
        return _awaited(batch.answer)

    def _send(self) -> None:
        """Let the child have the next batches, as many as are meant to be under way."""
        try:
            with self._sending:
                if self._requests.closed:
                    # The reader has ended: no thread would take an answer.
                    raise _failed("a closed pipe")
                while self._unsent and self._under_way.acquire(blocking=False):
                    batch = self._unsent.popleft()
                    # Not pickle: pickling takes longer than making the envelopes.
                    request = marshal.dumps([_portable(*placed) for placed in batch.events])
                    self._pending.put(batch.answer)
                    self._requests.write(_message(request))
                    self._requests.flush()
        except OSError:
            raise _failed("a closed pipe") from None

    def close(self) -> None:
        """End the child; another thread that signs meanwhile, or later, gets SignerFailed."""
        # Not during a batch: the answer to a batch that was sent must still be taken.
        if not self._sending.acquire(timeout=_PATIENCE_SECONDS):
            # Another thread is blocked writing to a child that stopped reading.
            self._child.kill()
            self._sending.acquire()
        self._pending.put(None)
        # The unsent messages no longer matter, and the child may be gone.
        with suppress(OSError):
            self._requests.close()
        self._sending.release()
        try:
            self._child.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join()
        self._answers.close()

    def _take_answers(self) -> None:
        while (pending := self._pending.get()) is not None:
            answer = _read(self._answers)
            self._under_way.release()
            if answer is None:
                pending.set_exception(_failed("the end of its answers"))
            else:
                pending.set_result(answer)


def _failed(got: str) -> SignerFailed:
    return SignerFailed("signer's process", "signed envelopes", got, "it ended")


def _outcome(
    event: PayloadEvent, timestamp: int, transaction_hash: bytes, attest: Attest
) -> Outcome:
    if (reason := quarantine_reason(event)) is not None:
        return str(reason)
    return attest(unsigned_originator_envelope(event, timestamp), transaction_hash)


def _portable(event: PayloadEvent, log: Log, timestamp: int) -> tuple[Any, ...]:
    # Neither an enumeration's member nor a named tuple, which marshal does not know.
    return (int(event.kind), *event[1:], timestamp, log.transaction_hash)


def _awaited(answer: Future[bytes | Sequence[Outcome]]) -> Sequence[Outcome]:
    try:
        found = answer.result(_PATIENCE_SECONDS)
    except TimeoutError:
        got = f"nothing for {_PATIENCE_SECONDS:g} s"
        raise SignerFailed("signer's process", "signed envelopes", got) from None
    return marshal.loads(found) if isinstance(found, bytes) else found


def _message(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


def _read(pipe: IO[bytes]) -> bytes | None:
    length = int.from_bytes(pipe.read(_LENGTH_BYTES), "big")
    data = pipe.read(length)
    # No message is empty: a missing length is the end.
    return data if length and len(data) == length else None


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer batches until the pipe is closed: the child's whole life."""
    secret = requests.read(SECRET_LENGTH)
    if len(secret) < SECRET_LENGTH:
        return
    attest = partial(sign_originator_envelope, key=SigningKey(secret))
    kinds = {int(kind): kind for kind in TopicKind}
    while (request := _read(requests)) is not None:
        outcomes = [
            _outcome(PayloadEvent(kinds[kind], *values), timestamp, transaction_hash, attest)
            for kind, *values, timestamp, transaction_hash in marshal.loads(request)
        ]
        answers.write(_message(marshal.dumps(outcomes)))
        answers.flush()


if __name__ == "__main__":
    # The parent ends the child by closing the pipe; a signal to both must not end the child before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # When the parent is gone, so is the reason to sign.
    with suppress(BrokenPipeError):
        _serve(sys.stdin.buffer, sys.stdout.buffer)
