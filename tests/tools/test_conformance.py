"""The list of demands: it is current, and each rule that is shown can still be broken."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chainkit.errors import ConfigurationError
from support.project import ROOT
from tools.breaking import Break, Ended
from tools.conformance.__main__ import PAGE, current
from tools.conformance.check import Conformance, Proof, faults
from tools.conformance.demands import Chapter, Demand, read_demands
from tools.conformance.markers import find_markers
from tools.conformance.page import page, read_proofs
from tools.conformance.proving import in_folders, noticing

MUTATION = Break("code.py", "limit = 5", "limit = 6")
BUILT = Demand("N1", "A limit | of 5.", ("code.py",), MUTATION)
TESTS = ("tests/test_limit.py::test_limit",)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text("limit = 5\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def listed(*demands: Demand, tests: Sequence[str] = TESTS, number: str = "N1") -> Conformance:
    proofs = {"N1": Proof(MUTATION.digest, frozenset(TESTS))}
    return Conformance([Chapter("Nodes", "XIP-49 3", demands)], {number: tests}, proofs)


def test_check__this_project__has_no_faults_and_a_current_page() -> None:
    assert list(faults(current(), ROOT)) == []
    assert PAGE.read_text(encoding="utf-8") == page(current())


def test_faults__demand_with_code_and_test__are_none(root: Path) -> None:
    assert list(faults(listed(BUILT), root)) == []


def test_faults__code_without_a_test__are_told(root: Path) -> None:
    conformance = listed(BUILT, tests=())

    assert list(faults(conformance, root)) == ["N1: expected a test of code.py, got none"]


def test_faults__marker_of_an_unknown_number__are_told(root: Path) -> None:
    found = list(faults(listed(Demand("N1", "A limit."), number="N2"), root))

    assert found == [f"{TESTS[0]}: expected the number of a demand, got N2"]


def test_faults__test_of_what_is_not_built__are_told(root: Path) -> None:
    found = list(faults(listed(Demand("N1", "A limit.")), root))

    assert found == [f"N1: expected the code that meets it, got only {TESTS[0]}"]


def test_faults__file_that_is_not_there__are_told(root: Path) -> None:
    found = list(faults(listed(replace(BUILT, code=("gone.py",))), root))

    assert found == ["N1: expected a file, got gone.py"]


def test_faults__number_twice__are_told(root: Path) -> None:
    assert "N1: expected one demand, got 2" in faults(listed(BUILT, BUILT), root)


@pytest.mark.parametrize(("source", "count"), [("limit = 4\n", 0), ("limit = 5\n" * 2, 2)])
def test_faults__text_that_does_not_occur_once__are_told(
    root: Path, source: str, count: int
) -> None:
    (root / "code.py").write_text(source)

    assert list(faults(listed(BUILT), root)) == [
        "N1: expected a mutation that applies, got code.py: expected the text of a break once, "
        f"and another instead, got {count}"
    ]


def test_faults__code_that_no_program_uses__are_told(root: Path) -> None:
    path = "src/chainkit/limits.py"
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text("def used_by_tests():\n    limit = 5\n")
    demand = replace(BUILT, code=(path,), mutation=replace(MUTATION, file=path))

    assert list(faults(listed(demand), root)) == [
        f"N1: expected code that a program uses, got {path}",
        f"N1: expected a mutation of code that a program uses, got {path}: used_by_tests",
    ]


def test_find_markers__python_and_solidity__finds_each_number(root: Path) -> None:
    (root / "tests/test_limit.py").write_text(
        'import pytest\n\n\n@pytest.mark.conforms("N1", "N2")\ndef test_limit(): ...\n\n\n'
        "def test_other(): ...\n"
    )
    (root / "tests/Limit.t.sol").write_text(
        "contract LimitTest {\n    /// conforms: N1, 2.1-1\n    /// @dev More.\n"
        "    function test_limit() public {}\n\n    function test_other() public {}\n}\n"
    )

    assert find_markers(root) == {
        "N1": ("tests/Limit.t.sol::test_limit", "tests/test_limit.py::test_limit"),
        "2.1-1": ("tests/Limit.t.sol::test_limit",),
        "N2": ("tests/test_limit.py::test_limit",),
    }


def test_noticing__mutation_or_test_is_another_now__is_none() -> None:
    changed = replace(BUILT, mutation=replace(MUTATION, replacement="limit = 4"))

    assert listed(BUILT).noticing(BUILT) == set(TESTS)
    assert listed(changed).noticing(changed) == set()
    assert listed(BUILT, tests=("tests/test_limit.py::test_other",)).noticing(BUILT) == set()


def test_page__built_and_not_built__counts_and_shows_both() -> None:
    text = page(listed(BUILT, Demand("N2", "A peer.")))

    assert "**2 demands: 1 shown (1 of them proved), 1 not built yet.**" in text
    assert "| N1 | A limit \\| of 5. | proved <!-- " in text
    assert " --> | [code.py](../code.py) | **[test_limit](../tests/test_limit.py)** |" in text
    assert "| N2 | A peer. | not built yet |  |  |" in text


def test_read_proofs__page__are_what_it_was_written_from() -> None:
    conformance = listed(BUILT, Demand("N2", "A peer."), tests=(*TESTS, "tests/test_b.py::test_b"))

    assert read_proofs(page(conformance)) == conformance.proofs


def test_read_demands__field_missing__is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demands.yaml"
    demand = {"N1": {"summary": "A limit.", "code": ["code.py"]}}
    chapter = {"title": "Nodes", "section": "XIP-49 3", "demands": demand}
    path.write_text(json.dumps({"chapters": [chapter]}))

    with pytest.raises(ConfigurationError, match="N1: expected code, mutation, summary"):
        read_demands(path)


UNIT, CLIENT = "tests/unit/test_limit.py::test_limit", "tests/client/test_limit.py::test_limit"
NETWORK = "tests/network/test_limit.py::test_limit"


class BrokenCopy:
    """A copy in which some tests fail with the mutation, and some always."""

    def __init__(self, noticing: Sequence[str], failing: Sequence[str] = ()) -> None:
        self._noticing = noticing
        self._failing = failing
        self._is_changed = False
        self.runs: list[tuple[str, ...]] = []

    @contextmanager
    def changed(self, change: Break) -> Iterator[None]:
        self._is_changed = True
        yield
        self._is_changed = False

    def pytest(self, *tests: str) -> Ended:
        self.runs.append(tests)
        failing = (*self._failing, *(self._noticing if self._is_changed else ()))
        failed = [each for each in tests if each in failing]
        return Ended(1 if failed else 0, "".join(f"FAILED {each} - it\n" for each in failed))


def tried(copy: BrokenCopy, *tests: str) -> tuple[str, ...]:
    return noticing(cast(Any, copy), MUTATION, tests, lambda words: None)


def test_in_folders__unit_tests_and_others__are_apart_and_unit_tests_first() -> None:
    other = "tests/client/test_other.py::test_other"

    assert list(in_folders([CLIENT, NETWORK, UNIT, other])) == [
        (UNIT,),
        (CLIENT, other),
        (NETWORK,),
    ]


def test_noticing__tests_of_a_folder_notice__runs_them_unchanged_and_no_other_folder() -> None:
    copy = BrokenCopy([CLIENT, NETWORK])

    assert tried(copy, NETWORK, CLIENT, UNIT) == (NETWORK,)
    assert copy.runs == [(UNIT,), (NETWORK,), (NETWORK,)]


def test_noticing__test_that_fails_unchanged__is_no_proof() -> None:
    with pytest.raises(ConfigurationError, match="expected all to pass unchanged, got tests/unit"):
        tried(BrokenCopy([], failing=[UNIT]), UNIT)


def test_noticing__nobody__is_empty() -> None:
    copy = BrokenCopy([])

    assert tried(copy, UNIT, NETWORK) == ()
    assert copy.runs == [(UNIT,), (NETWORK,)]
