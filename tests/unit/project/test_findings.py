"""The form of `findings/`. The scripts need packages of others and the network, and run by hand."""

import re
from pathlib import Path

import pytest

FINDINGS = Path("findings")
SCRIPTS = sorted(path for path in FINDINGS.glob("*.sh") if path.name != "lib.sh")
README_LINE = re.compile(r"^- \[([\w-]+)\]\(\1\.sh\): \S.+\.$", re.MULTILINE)
INSTALLED = re.compile(r"^(pip|npm)_packages (.+)$", re.MULTILINE)
PINNED = {
    "pip": re.compile(r"[\w.-]+==[\w.]+"),
    "npm": re.compile(r"(\w+@npm:)?(@[\w-]+/)?[\w.-]+@\d[\w.-]*"),
}
HOST = re.compile(r"https?://(?!127\.0\.0\.1|\$)|\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev)\b")
# Envoy's name of a type begins so; nothing is fetched from there.
TYPE = "type.googleapis.com/"


def test_readme__lists_exactly_the_scripts() -> None:
    named = README_LINE.findall((FINDINGS / "README.md").read_text())

    assert sorted(named) == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script__states_guess_and_seen__of_pinned_packages(script: Path) -> None:
    text = script.read_text()

    packages = [(tool, name) for tool, names in INSTALLED.findall(text) for name in names.split()]
    heads = re.findall(r"^# (Guess|Seen|Why it matters): ", text, re.MULTILINE)
    assert heads == ["Guess", "Seen", "Why it matters"]
    assert packages
    assert [name for tool, name in packages if not PINNED[tool].fullmatch(name)] == []
    assert "\nexpect " in text


@pytest.mark.parametrize("path", [*SCRIPTS, FINDINGS / "lib.sh"], ids=lambda path: path.stem)
def test_script__names_no_host(path: Path) -> None:
    assert HOST.search(path.read_text().replace(TYPE, "")) is None
