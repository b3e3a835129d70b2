import pytest

from tools.tests_of_change import tests_of_change as affected

TEXTS = {
    "src/lib/__init__.py": "",
    "src/lib/a.py": "import json",
    "src/lib/b.py": "from lib.a import value",
    "tests/support/chain.py": "import lib.b",
    "tests/unit/test_a.py": "from lib import a",
    "tests/unit/test_b.py": "def test() -> None:\n    from lib.b import value",
    "tests/unit/test_page.py": 'PAGE, CONTRACT = "findings.md", "Holder"',
    "tests/other/conftest.py": 'pytest_plugins = ["support.chain"]',
    "tests/other/test_other.py": "import lib",
    "tests/contracts/test_contract.py": "",
}


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("src/lib/a.py", ["other/test_other", "unit/test_a", "unit/test_b"]),
        ("src/lib/b.py", ["other/test_other", "unit/test_b"]),
        ("tests/unit/test_a.py", ["unit/test_a"]),
        ("docs/findings.md", ["unit/test_page"]),
        ("contracts/Registry.sol", ["contracts/test_contract"]),
        ("tests/solidity/Holder.sol", ["contracts/test_contract", "unit/test_page"]),
        ("tools/study/solidity/Holder.sol", ["unit/test_page"]),
        ("README.md", []),
    ],
)
def test_tests_of_change__changed_file__names_what_it_can_break(
    changed: str, tests: list[str]
) -> None:
    assert affected(TEXTS, [changed]) == [f"tests/{test}.py" for test in tests]
