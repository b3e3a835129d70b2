"""Which of the shipped alarms ring over a night: what nodes answer to scrapes, given to promtool.

A scrape of each node is made every second, and counts as one of a Prometheus that scrapes every
TICK_SECONDS: an alarm that waits for ten minutes waits for one here.
"""

from __future__ import annotations

import math
import re
import subprocess
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from support.operations import OPERATIONS, load

TICK_SECONDS = 10
PATIENCE_SECONDS = 3.0
RULES = OPERATIONS / "prometheus" / "rules.yml"
JOB = "chainkit-indexer"


class Scrapes:
    """Scrapes nodes from a thread of its own until ``close``."""

    def __init__(self, targets: Callable[[], Mapping[str, str]]) -> None:
        """Take how to ask for the URL of each node's monitor, by the node's name."""
        self._targets = targets
        self._ended = Event()
        self._names = set(re.findall(r"chainkit_\w+", RULES.read_text()))
        self._values: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self.ticks = 0
        self._thread = Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """Make no more scrapes."""
        self._ended.set()
        self._thread.join()

    def rang(self, folder: Path) -> dict[str, dict[str, list[int]]]:
        """Return at which ticks each alarm rang, by alarm and node."""
        alarms = [rule["alert"] for group in load(RULES)["groups"] for rule in group["rules"]]
        moments = [f"{tick * TICK_SECONDS}s" for tick in range(self.ticks)]
        content = {
            "rule_files": [str(RULES)],
            "evaluation_interval": f"{TICK_SECONDS}s",
            "tests": [
                {
                    "interval": f"{TICK_SECONDS}s",
                    "input_series": self._series(),
                    "alert_rule_test": [
                        {"eval_time": moment, "alertname": alarm}
                        for moment in moments
                        for alarm in alarms
                    ],
                }
            ],
        }
        path = folder / "night.yml"
        path.write_text(yaml.safe_dump(content))
        done = subprocess.run(
            ["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False
        )
        # Nothing is expected: whatever rings is printed.
        return _parsed(done.stdout + done.stderr)

    def _run(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            while not self._ended.wait(1.0):
                targets = dict(self._targets())
                found = {name: pool.submit(_scrape, url) for name, url in targets.items()}
                for name, answer in found.items():
                    self._take(name, answer.result())
                self.ticks += 1

    def _take(self, node: str, text: str | None) -> None:
        up = _key("up", {"instance": node, "job": JOB})
        self._values[up][self.ticks] = float(text is not None)
        for family in text_string_to_metric_families(text or ""):
            for sample in family.samples:
                if sample.name in self._names and math.isfinite(sample.value):
                    labels = {**sample.labels, "instance": node, "job": JOB}
                    self._values[_key(sample.name, labels)][self.ticks] = sample.value

    def _series(self) -> list[dict[str, str]]:
        return [
            {"series": key, "values": " ".join(self._notation(values))}
            for key, values in self._values.items()
        ]

    def _notation(self, values: Mapping[int, float]) -> list[str]:
        words = []
        for tick in range(self.ticks):
            is_first_without = tick not in values and tick - 1 in values
            words.append(repr(values[tick]) if tick in values else "_")
            if is_first_without:
                words[-1] = "stale"
        return words


def _scrape(url: str) -> str | None:
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_SECONDS) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def _key(name: str, labels: Mapping[str, Any]) -> str:
    inner = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{inner}}}"


def _parsed(printed: str) -> dict[str, dict[str, list[int]]]:
    found: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    alarm, tick = "", 0
    for line in printed.splitlines():
        if head := re.search(r"alertname: (\w+), time: (\S+?),", line):
            alarm, tick = head[1], _seconds(head[2]) // TICK_SECONDS
        elif labels := re.search(r'Labels:\{.*instance="(\d+)"', line):
            found[alarm][labels[1]].append(tick)
    if not found and "SUCCESS" not in printed:
        raise AssertionError(printed[-2000:])
    return {name: dict(nodes) for name, nodes in found.items()}


def _seconds(duration: str) -> int:
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([hms])", duration))
