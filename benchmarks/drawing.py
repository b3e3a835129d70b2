"""How pictures of docs/ look: the same figures give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK: Final = "#475569"
OURS: Final = "#2563eb"
OTHERS: Final = "#94a3b8"
_GRID: Final = "#e2e8f0"
_INCHES: Final = (9.2, 2.6)
_STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "chainkit-benchmarks",
}


@contextmanager
def drawn(panels: int) -> Iterator[tuple[Sequence[Axes], Callable[[], str]]]:
    """Give panels side by side with one vertical axis, and what returns the picture as SVG."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        yield figure.subplots(1, panels, sharey=True), lambda: _svg(figure)


def bare(axes: Axes, title: str) -> None:
    """Leave nothing of a panel of bars but its title, bars and labels."""
    axes.set_title(title, fontsize=9)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.margins(x=0.18)
    axes.tick_params(length=0)
    axes.spines["bottom"].set_visible(False)


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
