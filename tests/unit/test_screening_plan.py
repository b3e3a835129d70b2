"""How an audit is divided: nothing is left to nobody, and a longer chain changes only its end."""

from dataclasses import replace
from pathlib import Path

import pytest

from chainkit_jobs.expected import PayloadContracts
from chainkit_jobs.screening import plan as planning
from chainkit_jobs.screening.footers import in_order
from chainkit_jobs.screening.node_rows import RowGroup
from chainkit_jobs.screening.plan import NodeInput, Plan, make_plan
from chainkit_jobs.screening.rules import PostingRules
from chainkit_jobs.screening.screen import ScreenedNode
from chainkit_jobs.sources import read_export
from support.audit_exports import base_posts, honest, registered, write_chain, write_node
from support.identities import GROUP_MESSAGES, IDENTITY_UPDATES, key_of

NODE = 100
KEY = key_of(NODE)


def group(number: int, lowest: int, highest: int, is_guided: bool = True) -> RowGroup:
    return RowGroup("file", number, 0, 10, 1, lowest, highest, is_guided, "digest")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    posts = base_posts()
    chain = write_chain(tmp_path / "chain", posts, [registered(NODE)])
    node = write_node(tmp_path / "node", honest(posts, KEY), KEY, is_table_right=True)
    return make_plan(
        read_export(chain, "chain"),
        [NodeInput(ScreenedNode(NODE, KEY.public_key, 1, 20), read_export(node, "node"))],
        PayloadContracts(GROUP_MESSAGES, IDENTITY_UPDATES),
        PostingRules(),
        with_signatures=True,
    )


def test_make_plan__a_small_export__is_one_unit_with_the_rows_that_claim_its_sequences(plan):
    [unit] = plan.units
    [serving] = unit.nodes

    assert [(each.lowest, each.highest) for each in serving.groups] == [(1, 8)]
    assert (unit.first_block, unit.last_block) == (1, 17)


def test_make_plan__the_same_again__has_the_same_names_and_another_key_has_others(plan):
    [unit] = plan.units
    [serving] = unit.nodes
    other = replace(serving, node=replace(serving.node, registered_key=key_of(7).public_key))

    assert planning._unit_name(unit) == unit.name
    assert planning._unit_name(replace(unit, nodes=(other,))) != unit.name
    assert planning._unit_name(replace(unit, with_signatures=False)) != unit.name
    assert planning._unit_name(replace(unit, recalled=(3,))) != unit.name


@pytest.mark.parametrize(
    ("seen", "expected"),
    [((1, 8), []), ((1, 9), []), ((2, 8), [((2, 8),)]), ((9, 20), [((9, 20),)]), (None, [()])],
)
def test_leftovers__what_the_units_saw__the_rest_is_left(plan, seen, expected):
    ranges = {} if seen is None else {plan.units[0].name: seen}

    assert [each.ranges for each in plan.leftovers(ranges)] == expected


def test_recall__some_sequences__only_those_that_a_unit_holds(plan):
    [unit] = plan.recall([99, 8, 3], {plan.units[0].name: (1, 8)})

    assert unit.recalled == (3, 8)
    assert plan.recall([99], {plan.units[0].name: (1, 8)}) == []


def test_in_order__groups_that_overlap__only_the_first_is_guided():
    groups = [group(2, 5, 9), group(0, 1, 3), group(1, 3, 4), group(3, 1, 0, is_guided=False)]

    found = in_order(groups)

    guided = [(each.lowest, each.highest) for each in found if each.is_guided]
    assert guided == [(1, 3), (5, 9)]
    assert len(found) == len(groups)
