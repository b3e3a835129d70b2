import pytest

from chainkit.chain.backoff import Backoff


def test_pause__without_jitter__doubles_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)

    assert [backoff.pause(growths) for growths in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_pause__another_factor__grows_by_it() -> None:
    assert Backoff(1.0, 100.0, factor=3.0).pause(2) == 9.0


@pytest.mark.parametrize(("drawn", "seconds"), [(0.0, 1.5), (0.5, 1.75), (1.0, 2.0)])
def test_pause__with_jitter__loses_at_most_that_share(drawn: float, seconds: float) -> None:
    assert Backoff(1.0, 2.0, jitter=0.25).pause(9, lambda: drawn) == seconds


def test_pause__after_days_of_failures__is_the_longest() -> None:
    assert Backoff(0.2, 60.0).pause(10**6) == 60.0
