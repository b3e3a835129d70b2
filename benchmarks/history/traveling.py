"""The commands of both devices, one after the other, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness import disk_folder
from benchmarks.history.past import Person, asking_person
from benchmarks.network.catching_up import recover_floor
from benchmarks.usage import process_mebibytes
from benchmarks.watch import Run, run
from chainkit.errors import MalformedAnswer
from chainkit_client.mls.program import find_node
from localnet.commands import CHAINKIT

STEPS: Final = ("approve", "apply", "check")
"""The commands, in their order."""

_LIBRARIES: Final = (
    *("asyncio", "click", "coincurve", "Crypto.Cipher.ChaCha20_Poly1305", "eth_abi", "grpc"),
    *("google.protobuf.message", "orjson", "pyrage", "requests", "rlp", "sqlalchemy", "trie"),
)
"""Other projects' modules that these commands import."""

_PAUSE_SECONDS: Final = 0.03
"""The MLS engine's child may live for a fifth of a second."""


@dataclass(frozen=True, slots=True)
class Traveled:
    """A history that came to the second device, and was compared with the network."""

    approve: Run
    """Read from the database, compressed, encrypted and uploaded."""
    apply: Run
    """Downloaded, decrypted, each id computed, and stored."""
    check: Run
    """Compared with all envelopes of the nodes, each of which is verified."""
    floor_seconds: float
    """How long coincurve recovers both keys of so many envelopes, on one thread."""
    file_bytes: int
    """The length of the file."""
    floor_mebibytes: float
    """Memory of Python with all libraries of these commands, and of Node, which do nothing."""


def measure(count: int) -> Traveled:
    """Let so many messages travel. Raises MalformedAnswer where one does not arrive proven."""
    with disk_folder() as folder, asking_person(folder, count) as person:
        before = recover_floor(person.envelopes)
        approve = _run(person, person.laptop, "approve", person.request_id, typed=person.pin)
        apply = _run(person, person.phone, "apply")
        check = _run(person, person.phone, "check", "--json")
        after = recover_floor(person.envelopes)
        [file] = person.files()
        length = file.stat().st_size
    [covered] = json.loads(check.output)
    if covered["proven"] < count or covered["omitted"]:
        raise MalformedAnswer("history", f"{count} proven messages", covered)
    seconds = count / ((before.per_second + after.per_second) / 2)
    return Traveled(approve, apply, check, seconds, length, _floor_mebibytes())


def _run(person: Person, home: Path, *words: str, typed: str = "") -> Run:
    command = [CHAINKIT, *person.words(home, *words)]
    return run(
        command,
        person.registry.settings.environment,
        typed=f"{typed}\n",
        pause_seconds=_PAUSE_SECONDS,
    )


def _floor_mebibytes() -> float:
    python = [sys.executable, "-c", f"import {', '.join(_LIBRARIES)}; print(); input()"]
    node = [str(find_node()), "-e", "console.log(); process.stdin.resume()"]
    return _idle_mebibytes(python) + _idle_mebibytes(node)


def _idle_mebibytes(command: Sequence[str]) -> float:
    """Return the memory of a program that has printed a line, and waits for one."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = process_mebibytes(process.pid)
        process.communicate(b"\n")
    return found
