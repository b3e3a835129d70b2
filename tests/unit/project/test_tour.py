import re

from support.project import DOCS, ROOT

MOST_FILES = 15


def test_walk_in_the_tour__files__exist_and_are_few() -> None:
    walk = (DOCS / "tour.md").read_text().partition("## One log")[2]

    files = re.findall(r"^[0-9]+\. `([^`]+)`", walk, re.MULTILINE)

    assert 10 < len(files) < MOST_FILES
    assert [file for file in files if not (ROOT / file).is_file()] == []
