import re

import pytest

from tools.mutation.__main__ import PAGE, all_mutants
from tools.mutation.mutants import Mutant, mutants_of
from tools.mutation.report import Tally, page, read_survivors, unexplained
from tools.mutation.sources import syntax_trees
from tools.mutation.trial import INVALID, KILLED, SURVIVED

SOURCE = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Math} from "math.sol";

/// Naïve on purpose: offsets count bytes, and 3 is no constant here.
contract Purse {
    uint256 private constant CAP = 10;
    uint256 public sum;
    address public last;
    bool public open = true;

    event Paid(address from, uint256 sum, uint256 part);
    error TooMuch(uint256 part);
    error Closed();

    modifier whileOpen() {
        if (!open) revert Closed();
        _;
    }

    function pay(uint256 part) external whileOpen returns (uint256 total) {
        if (part > CAP || part == 0) revert TooMuch(part);
        last = msg.sender;
        sum += part;
        emit Paid(msg.sender, sum, part);
        return Math.min(sum, part);
    }

    function refuse() external pure {
        revert Closed();
    }

    function count(uint256 end) external view returns (bool) {
        uint256 found;
        for (uint256 index; index < end; ++index) {
            if (index == 3) continue;
            found++;
        }
        assembly {
            found := 5
        }
        return found * 2 != sum;
    }
}
"""
LIBRARY = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

library Math {
    function min(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? a : b;
    }

    function max(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? b : a;
    }
}
"""


@pytest.fixture(scope="module")
def mutants():
    trees = syntax_trees({"purse.sol": SOURCE, "math.sol": LIBRARY})
    return mutants_of("purse.sol", SOURCE, trees["purse.sol"])


def changes(mutants, place):
    prefix = f"purse.sol {place}: "
    return [one.name.removeprefix(prefix) for one in mutants if one.name.startswith(prefix)]


def test_mutants_of__a_function__are_every_change_in_the_order_of_the_source(mutants):
    assert changes(mutants, "pay") == [
        "modifier removed: `whileOpen` → ``",
        "condition: `part > CAP || part == 0` → `false`",
        "condition dropped: `part > CAP || part == 0` → `part == 0`",
        "condition dropped: `part > CAP || part == 0` → `part > CAP`",
        "condition: `part > CAP || part == 0` → `true`",
        "relation: `>` → `<=`",
        "relation: `>` → `>=`",
        "logic: `||` → `&&`",
        "relation: `==` → `!=`",
        "constant: `0` → `1`",
        "assignment removed: `last = msg.sender;` → `{}`",
        "sender: `msg.sender` → `tx.origin`",
        "assignment removed: `sum += part;` → `{}`",
        "event removed: `emit Paid(msg.sender, sum, part);` → `{}`",
        "sender: `msg.sender` → `tx.origin` (2)",
        "arguments swapped: `sum, part` → `part, sum`",
        "return removed: `return Math.min(sum, part);` → `{}`",
        "function: `Math.min` → `Math.max`",
        "returned value: `Math.min(sum, part)` → `(Math.min(sum, part)) + 1`",
        "arguments swapped: `sum, part` → `part, sum` (2)",
    ]


def test_mutants_of__a_loop__keep_its_form_and_leave_assembly_alone(mutants):
    assert changes(mutants, "count") == [
        "condition: `index < end` → `false`",
        "relation: `<` → `<=`",
        "relation: `<` → `>=`",
        "step: `++index` → `--index`",
        "condition: `index == 3` → `false`",
        "condition: `index == 3` → `true`",
        "relation: `==` → `!=`",
        "constant: `3` → `2`",
        "constant: `3` → `4`",
        "loop: `continue` → `break`",
        "step: `found++` → `found--`",
        "statement removed: `found++;` → `{}`",
        "return removed: `return found * 2 != sum;` → `{}`",
        "returned value: `found * 2 != sum` → `!(found * 2 != sum)`",
        "arithmetic: `*` → `+`",
        "constant: `2` → `1`",
        "constant: `2` → `3`",
        "relation: `!=` → `==`",
    ]


def test_mutants_of__a_refusal__remove_it_once(mutants):
    assert changes(mutants, "refuse") == ["refusal removed: `revert Closed();` → `{}`"]
    assert changes(mutants, "whileOpen") == [
        "condition: `!open` → `false`",
        "negation: `!open` → `open`",
        "condition: `!open` → `true`",
    ]


def test_mutants_of__the_contract_itself__change_its_constants(mutants):
    assert changes(mutants, "Purse") == [
        "constant: `10` → `11`",
        "constant: `10` → `9`",
        "constant: `true` → `false`",
    ]


def test_applied_to__each_mutant__compiles_and_differs_from_all_others(mutants):
    sources = {f"{index}.sol": one.applied_to(SOURCE) for index, one in enumerate(mutants)}
    assert len(set(sources.values()) | {SOURCE}) == len(mutants) + 1
    assert set(syntax_trees(sources | {"math.sol": LIBRARY})) == {*sources, "math.sol"}


def test_applied_to__bytes_before_the_change__are_kept(mutants):
    (swapped,) = [one for one in mutants if one.name.endswith("`part, sum`")]
    assert swapped.applied_to(SOURCE) == SOURCE.replace("sender, sum, part", "sender, part, sum")
    assert SOURCE.splitlines()[swapped.line - 1].strip().startswith("emit Paid")


def test_applied_to__another_source__is_refused(mutants):
    with pytest.raises(ValueError, match="expected the text before the change"):
        mutants[0].applied_to(SOURCE.replace("10", "9"))


def test_name__of_a_long_change__is_one_line():
    mutant = Mutant("a.sol", 1, "f", "call removed", 0, "f(\n        1\n    );", "{}", 2)
    assert mutant.name == "a.sol f: call removed: `f( 1 );` → `{}` (2)"


def row(after, outcome, operator="constant"):
    return Mutant("contracts/A.sol", 7, "f", operator, 0, "1", after), outcome


def test_score__of_rows__does_not_count_what_did_not_compile():
    rows = [row("a", KILLED), row("b", KILLED), row("c", SURVIVED), row("d", INVALID)]
    assert Tally.of(rows) == Tally(killed=2, survived=1, invalid=1)
    assert Tally.of(rows).score == "66.7 %"
    assert Tally.of([]).score == "none"


def test_page__of_rows__counts_by_contract_and_change_and_explains_survivors():
    rows = [row("a", KILLED), row("b", SURVIVED), row("c", SURVIVED, "loop"), row("d", INVALID)]
    first, second = (mutant.name for mutant, outcome in rows if outcome == SURVIVED)
    text = page(rows, {first: "nobody can tell"})
    assert "**1 of 3 mutants killed: 33.3 %**" in text
    assert "| contracts/A.sol | 1 | 2 | 1 | 33.3 % |" in text
    assert "| loop | 0 | 1 | 0 | 0.0 % |" in text
    assert f"- {first}  \n  nobody can tell\n" in text
    assert f"- {second}  \n  No reason is known.\n" in text
    assert unexplained(rows, read_survivors(text)) == [second]


def test_page__of_this_project__gives_reasons_for_mutants_that_exist():
    survivors = read_survivors(PAGE.read_text(encoding="utf-8"))
    assert survivors.keys() <= {mutant.name for mutant in all_mutants()}
    assert survivors.keys()
    assert all(re.fullmatch(r"[A-Z].{20,}\.", reason) for reason in survivors.values())
