"""Uploads and downloads that are admitted, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chainkit_backups.admission import MOST_DOWNLOADS, Admission
from chainkit_backups.types import Full, Kind, Limits, NotAllowed, Stored, TooLarge, TooMuch

LIMITS = {Kind.OPEN: Limits(10, 15, 40), Kind.GRANTED: Limits(30, 0, 40)}
ONE, OTHER = "192.0.2.1", "192.0.2.2"


def admission(kept: Iterable[Stored] = (), limits: dict[Kind, Limits] = LIMITS) -> Admission:
    return Admission(limits, kept, lambda: 0.0)


def stored(kind: Kind = Kind.OPEN, size: int = 0, address: str = ONE) -> Stored:
    return Stored("id", kind, size, 100.0, address)


@pytest.mark.conforms("H23")
@pytest.mark.parametrize(
    ("upload", "length", "refusal"),
    [
        (stored(), 10, None),
        (stored(size=5), 6, TooLarge),
        (stored(address=OTHER), 6, TooMuch),
        (stored(Kind.GRANTED, address=OTHER), 30, None),
    ],
)
def test_take__bytes__are_counted_within_the_limits(
    upload: Stored, length: int, refusal: type[Exception] | None
) -> None:
    judge = admission()
    judge.take(stored(address=OTHER), 10)
    before = judge.total(upload.kind)

    if refusal is None:
        judge.take(upload, length)
    else:
        with pytest.raises(refusal):
            judge.take(upload, length)

    assert judge.total(upload.kind) == before + (0 if refusal else length)


def test_take__total_of_an_earlier_run__counts_for_no_address() -> None:
    judge = admission([stored(size=35, address="")])
    judge.take(stored(), 5)

    with pytest.raises(Full):
        judge.take(stored(address=OTHER), 1)
    judge.give_back(stored(address=""), 35)
    judge.take(stored(), 10)


def test_begin_upload__of_a_kind_that_is_off__is_refused() -> None:
    judge = admission(limits={Kind.OPEN: Limits(10, 15, 0), Kind.GRANTED: LIMITS[Kind.GRANTED]})

    with pytest.raises(NotAllowed, match="expected an upload URL with a grant"):
        judge.begin_upload(Kind.OPEN, ONE, None)
    judge.begin_upload(Kind.GRANTED, ONE, 30)


def test_begin_download__of_a_file_that_was_sent_often__is_refused() -> None:
    judge = admission()
    popular = stored(size=10)
    popular.sent = MOST_DOWNLOADS * 10 - 1
    judge.begin_download(popular, ONE)

    popular.sent += 1

    with pytest.raises(TooMuch):
        judge.begin_download(popular, ONE)


def test_begin_download__too_many_of_one_address__are_refused_to_it_alone() -> None:
    judge = admission()
    for _ in range(100):
        judge.begin_download(stored(size=10), ONE)

    with pytest.raises(TooMuch) as refused:
        judge.begin_download(stored(size=10), ONE)

    assert refused.value.retry_seconds == pytest.approx(0.2)
    judge.begin_download(stored(size=10), OTHER)
