"""All that Java writes is passed on, except one warning."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from chainkit_jobs.spark.gateway import INCUBATOR_WARNING, pass_on


class Pieces(io.BytesIO):
    """A pipe that gives its content in pieces of some length."""

    def __init__(self, content: bytes, length: int) -> None:
        super().__init__(content)
        self.length = length

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(self.length)


def passed_on(content: bytes, length: int, path: Path) -> bytes:
    pass_on(Pieces(content, length), path.open("wb"))
    return path.read_bytes()


@pytest.mark.parametrize("length", [1, 7, len(INCUBATOR_WARNING), 1000])
@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b""), (b"WARNING: another\n", b"[Stage 0:> (0 + 2) / 4]\r"), (b"W", b"WARNING")],
)
def test_pass_on__the_warning_in_pieces__all_else_is_passed_on(
    length: int, before: bytes, after: bytes, tmp_path: Path
) -> None:
    content = before + INCUBATOR_WARNING + after

    assert passed_on(content, length, tmp_path / "stderr") == before + after


def test_pass_on__no_warning__nothing_is_changed(tmp_path: Path) -> None:
    content = INCUBATOR_WARNING[:-1] + b" and more\n"

    assert passed_on(content, 5, tmp_path / "stderr") == content
