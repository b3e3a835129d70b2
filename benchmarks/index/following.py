"""How long after a block is there its envelopes are, and how long a reorg takes to repair."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

from benchmarks.index.bench import Bench, MeasuringFailed, started
from benchmarks.index.chain import BenchmarkChain
from benchmarks.index.child import FOLLOW, RETRYING
from benchmarks.index.job import Stretch

BLOCK_SECONDS: Final = 0.25
REORG_BLOCKS: Final = 64
_LAST_WORDS_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a block to its envelopes."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Followed:
    """One way to follow, measured."""

    latency: Latency
    blocks: int
    reorg_seconds: float
    """From the new branch's head to the last envelope of it."""
    retracted: int
    """Envelopes that the reorg took back."""
    retries: int
    """Steps that an answer which did not hold, or none, had it take again."""


class Follower:
    """A running indexer, and what it says of each of its steps."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Listen to a process that follows."""
        assert process.stdout is not None and process.stderr is not None
        self.pid = process.pid
        self.retries = 0
        self._lines: SimpleQueue[str] = SimpleQueue()
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def until(self, is_it: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return all steps up to the first one that is what is waited for."""
        steps: list[dict[str, Any]] = []
        while not (steps and is_it(steps[-1])):
            try:
                line = self._lines.get(timeout=_PATIENCE_SECONDS)
            except Empty:
                expected = f"a step within {_PATIENCE_SECONDS} seconds"
                raise MeasuringFailed("follower", expected, "none") from None
            # anvil forgets contracts' code in old states: the registry is asked again, as it must.
            if line.startswith((RETRYING, "registry: ")):
                self.retries += 1
            elif line.startswith("{"):
                steps.append(json.loads(line))
            else:
                time.sleep(_LAST_WORDS_SECONDS)
                rest = [line, *(self._lines.get() for _ in range(self._lines.qsize()))]
                raise MeasuringFailed("follower", "steps", "".join(rest).strip())
        return steps

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the process stand still meanwhile."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)


def measure_following(
    bench: Bench, database: str, by_websocket: bool, blocks: int, events: int
) -> Followed:
    """Follow new blocks at their pace, then through a reorg."""
    chain = bench.chain
    websocket = chain.url.replace("http", "ws", 1) if by_websocket else None
    job = bench.job(f"{FOLLOW}_{database}", Stretch(0, 0, 0), websocket)
    with started(job) as process:
        follower = Follower(process)
        follower.until(lambda step: step["kind"] == "Idle")
        latency = latencies(*_follow_blocks(chain, follower, blocks, events))
        chain.mine(REORG_BLOCKS, events, lambda _: None)
        head = chain.head()
        follower.until(lambda step: step["number"] == head)
        seconds, retracted = _follow_reorg(chain, follower)
    return Followed(latency, blocks, seconds, retracted, follower.retries)


def _follow_blocks(
    chain: BenchmarkChain, follower: Follower, blocks: int, events: int
) -> tuple[dict[int, float], list[dict[str, Any]]]:
    """Mine at the chain's pace; return when each block was there, and the follower's steps."""
    height = chain.head()
    there: dict[int, float] = {}
    due = time.monotonic()
    for number in range(height + 1, height + blocks + 1):
        # Halfway: anvil takes a dozen milliseconds of both cores to admit them, which are not the
        # indexer's while it follows the block before.
        _sleep_until(due + BLOCK_SECONDS / 2)
        chain.post(events)
        due += BLOCK_SECONDS
        _sleep_until(due)
        # Before it is mined: the time that mining takes counts against the indexer.
        there[number] = time.monotonic()
        chain.mine_block()
    return there, follower.until(lambda step: step["number"] == height + blocks)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def latencies(there: dict[int, float], steps: Sequence[dict[str, Any]]) -> Latency:
    """Compare when blocks were there with when steps had committed them."""
    commits = [(step["number"], step["at"]) for step in steps if step["kind"] == "Advanced"]
    waits = sorted(
        1000 * (min(at for number, at in commits if number >= block) - moment)
        for block, moment in there.items()
    )
    return Latency(*(waits[math.ceil(share * len(waits)) - 1] for share in (0.5, 0.95, 0.99)))


def _follow_reorg(chain: BenchmarkChain, follower: Follower) -> tuple[float, int]:
    # The new branch has to be there at once, so that what anvil needs to make it does not count.
    with follower.stopped():
        head = chain.reorg(REORG_BLOCKS).hex()
        began = time.monotonic()
    steps = follower.until(lambda step: step["kind"] == "Advanced" and step["hash"] == head)
    return steps[-1]["at"] - began, sum(step["retracted"] for step in steps)
