import pytest

from chainkit.text.counting import counted


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 findings"), (1, "1 finding"), (2, "2 findings")]
)
def test_counted__any_number__has_its_noun(count: int, words: str) -> None:
    assert counted(count, "finding") == words
