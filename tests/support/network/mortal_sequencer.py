"""A sequencer under load in a process of its own, to be killed with SIGKILL at any moment.

Python's own start takes a second; a thousand deaths would take long. So each life is a fork of a
parent that has imported everything. Each line on its standard input is one life. Each line on its
standard output is a word and what belongs to it: ``alive PID``, ``open`` once the database is open
or ``refused REASON``, ``answered ID DIGEST`` after an envelope was answered, ``ended CODE``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, Self

from chainkit.errors import StoreInUse
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.types import NewEnvelope
from support.chains.fake_chain import FakeChain
from support.project import TESTS

KEY: Final = SigningKey(b"\3" * 32)
NODE_ID: Final = 100
IDENTITY: Final = Identity.of(FakeChain().deployment, KEY.public_key)
TOPIC: Final = b"\1" + bytes(32)
_PAYERS: Final = 6
"""Threads that publish, each one request after the other."""
_LATE_IMPORTS: Final = (
    "alembic.command",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "chainkit_indexer.storage.postgresql",
)


@dataclass(frozen=True)
class Life:
    """One process: its database and record, a number of its own, and its clock at the start."""

    location: str
    record: str
    number: int
    clock_ns: int


class Answer(NamedTuple):
    """An envelope that a payer has received."""

    sequence_id: int
    digest: str


class MortalSequencer:
    """The parent of one life at a time; use as a context manager."""

    def __init__(self) -> None:
        paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "support.network.mortal_sequencer"],
            env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process = 0
        self.refusal = ""
        """Why the life that was begun could not open its database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._send_kill()
        self._parent.communicate()

    def begin(self, life: Life) -> None:
        """Start a process, which may not have opened its database yet."""
        if self._process:
            # Left by a test that failed.
            self.kill()
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(asdict(life)) + "\n")
        self._parent.stdin.flush()
        self._process = int(self._next("alive"))

    def opens(self) -> bool:
        """Wait until it has opened its database, or has ended because it was refused."""
        self.refusal = self._next("open", "refused")
        if self.refusal:
            assert self._next("ended") == "0"
        return not self.refusal

    def answers(self, count: int) -> list[Answer]:
        """Wait for so many answers."""
        return [_answer(self._next("answered")) for _ in range(count)]

    def kill(self) -> list[Answer]:
        """Send SIGKILL, wait for the end, and return what was answered before."""
        self._send_kill()
        rest = []
        while (word := self._line())[0] != "ended":
            if word[0] == "answered":
                rest.append(_answer(word[1]))
            assert word[0] != "refused", word
        assert word[1] == str(-signal.SIGKILL), word
        return rest

    def _send_kill(self) -> None:
        # It may have ended by an error, which standard error tells.
        with suppress(ProcessLookupError):
            if self._process:
                os.kill(self._process, signal.SIGKILL)

    def _next(self, *wanted: str) -> str:
        word, rest = self._line()
        assert word in wanted, (word, rest)
        return rest

    def _line(self) -> tuple[str, str]:
        assert self._parent.stdout is not None
        word, _, rest = self._parent.stdout.readline().strip().partition(" ")
        if word == "ended":
            self._process = 0
        return word, rest


def _answer(words: str) -> Answer:
    sequence_id, digest = words.split()
    return Answer(int(sequence_id), digest)


def digest_of(envelope: bytes) -> str:
    """Return by which an envelope is known in answers."""
    return sha256(envelope).hexdigest()


def _main() -> None:
    for name in _LATE_IMPORTS:
        import_module(name)
    for line in sys.stdin:
        assert threading.active_count() == 1, threading.enumerate()
        child = os.fork()
        if child == 0:
            _live(Life(**json.loads(line)))
        _, status = os.waitpid(child, 0)
        _say(f"ended {os.waitstatus_to_exitcode(status)}")


def _say(*lines: str) -> None:
    # One write, which a pipe takes as a whole or not at all, and no buffer that dies with us.
    os.write(sys.stdout.fileno(), "".join(f"{line}\n" for line in lines).encode())


def _live(life: Life) -> None:
    code = 1
    try:
        _say(f"alive {os.getpid()}")
        _originate(life)
    except StoreInUse as error:
        _say(f"refused {error}")
        code = 0
    finally:
        os._exit(code)


def _originate(life: Life) -> None:
    begun = time.monotonic_ns()
    store = Store.open(life.location, IDENTITY)
    _say("open")
    sequencer = Sequencer(
        store,
        lambda: NODE_ID,
        KEY,
        lambda: life.clock_ns + time.monotonic_ns() - begun,
        lambda rows: None,
        SequenceRecord(Path(life.record)),
    )
    payers = [
        threading.Thread(target=_publish, args=(sequencer, f"{life.number}-{payer}"))
        for payer in range(_PAYERS)
    ]
    for each in payers:
        each.start()
    for each in payers:
        each.join()


def _publish(sequencer: Sequencer, payer: str) -> None:
    """Publish without end: requests of 1 to 3 payloads, each named ``request place/count``."""
    number = 0
    while True:
        number += 1
        count = 1 + number % 3
        names = [f"{payer}-{number} {place}/{count}" for place in range(1, count + 1)]
        payloads = [NewEnvelope(TOPIC, name.encode(), None) for name in names]
        answered = sequencer.submit(payloads).result()
        _say(*(f"answered {_id_in(each)} {digest_of(each)}" for each in answered))


def _id_in(envelope: bytes) -> int:
    return parse_originated(envelope).envelope.sequence_id


if __name__ == "__main__":
    _main()
