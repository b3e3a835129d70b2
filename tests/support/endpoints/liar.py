"""An endpoint before an anvil that changes one thing of one answer, whenever it is asked for it.

The things are generated from the JSON that the chain really answers: each text, number and flag of
each answer, at its place. The chain must stand still, because its answers are kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.errors import ChainkitError, RefusedRequest
from localnet.anvil import Anvil

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Change:
    """A liar's change: one place in the answer to one call."""

    call: str
    """Method and parameters, as JSON."""
    path: Path

    def __str__(self) -> str:
        return f"{self.call} {'.'.join(map(str, self.path))}"

    @property
    def kind(self) -> tuple[str, ...]:
        """The method and the fields on the way, wherever in a list."""
        names = (str(part) for part in self.path if isinstance(part, str))
        return (json.loads(self.call)[0], *names)


class KeptAnswers:
    """The answers of an anvil, asked once for each call."""

    def __init__(self, anvil: Anvil) -> None:
        self._anvil = anvil
        self.results: dict[str, Any] = {}

    def answer(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        call = json.dumps([method, params])
        if call not in self.results:
            try:
                self.results[call] = {"result": self._anvil.request(method, *params)}
            except RefusedRequest as error:
                # anvil's own words: for one, for a height above the head.
                message = str(error.got)
                self.results[call] = {"error": {"code": -32602, "message": message}}
        answer: dict[str, Any] = self.results[call]
        return answer

    def changes(self) -> list[Change]:
        """Every place that was answered so far, in the order of the calls."""
        return [
            Change(call, path)
            for call, answer in self.results.items()
            if "result" in answer
            for path in places(answer["result"])
        ]


class Liar:
    """A transport that answers as the chain does, but for one change; ``told`` counts the lies."""

    def __init__(self, kept: KeptAnswers, change: Change | None, name: str) -> None:
        self._kept = kept
        self._change = change
        self.told = 0
        self.endpoint = Endpoint(self, name, RetryPolicy(attempts=1))

    def make_request(self, method: str, params: Sequence[Any]) -> Any:
        answer = self._kept.answer(method, params)
        change = self._change
        if change is None or change.call != json.dumps([method, params]):
            return answer
        self.told += 1
        return {"result": changed(answer["result"], change.path)}

    def make_batch_request(self, calls: Sequence[Any]) -> Any:
        return [self.make_request(method, params) for method, params in calls]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Return the path to each text, number, flag and null of a JSON value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))
    else:
        yield path


def changed(value: Any, path: Path) -> Any:
    """Return a copy of a JSON value in which one place is another of the same form."""
    if not path:
        return _other(value)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:])
    return copy


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str) and value.startswith("0x"):
        return value[:-1] + format(int(value[-1], 16) ^ 1, "x") if len(value) > 2 else "0x01"
    if isinstance(value, int):
        return value + 1
    return "0x" + "01" * 20 if value is None else value + "1"


def of_every_kind(changes: Sequence[Change], most_of_a_kind: int) -> list[Change]:
    """Return some of each kind of change, spread over all of that kind."""
    counts = Counter(change.kind for change in changes)
    seen: Counter[tuple[str, ...]] = Counter()
    chosen = []
    for change in changes:
        step = -(-counts[change.kind] // most_of_a_kind)
        if seen[change.kind] % step == 0:
            chosen.append(change)
        seen[change.kind] += 1
    return chosen


def errors_of(errors: Sequence[ChainkitError]) -> str:
    """The errors of a run, for the message of a test that fails."""
    return "\n".join(f"{type(error).__name__}: {error}" for error in errors)
