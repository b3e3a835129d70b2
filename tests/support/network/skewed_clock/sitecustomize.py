"""Python imports this file at its start: the process's time of day is apart from the machine's.

``SKEWED_CLOCK`` names a file with the seconds, which may change while the process runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_FILE = Path(os.environ["SKEWED_CLOCK"])
_time_ns = time.time_ns


def _skewed_ns() -> int:
    return _time_ns() + int(_FILE.read_text()) * 10**9


time.time_ns = _skewed_ns
time.time = lambda: _skewed_ns() / 10**9
