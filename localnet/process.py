"""Child processes that never outlive what started them."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Ask the kernel to end the child when its parent dies, even by SIGKILL (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
