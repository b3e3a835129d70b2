"""How an audit is divided: nothing is left to nobody, and a longer chain changes only its end."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit_jobs.reconcile.screening import plan as planning
from chainkit_jobs.reconcile.screening.footers import NOWHERE, in_order, row_groups
from chainkit_jobs.reconcile.screening.node_rows import HIGHEST_SEQUENCE, RowGroup
from chainkit_jobs.reconcile.screening.plan import Plan, divide, make_plan
from chainkit_jobs.sources import read_export
from support.audit.audit_exports import base_posts, honest, registered, write_chain, write_node
from support.audit.identities import key_of
from support.audit.scopes import node_export, scope_of

NODE = 100
KEY = key_of(NODE)


def group(number: int, lowest: int, highest: int, is_guided: bool = True) -> RowGroup:
    ends = (lowest, highest)
    return RowGroup("file", number, 10 * number, 10, 1, *ends, *ends, is_guided, "digest")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    posts = base_posts()
    chain = write_chain(tmp_path / "chain", posts, [registered(NODE)])
    node = write_node(tmp_path / "node", honest(posts, KEY), KEY, is_table_right=True)
    return make_plan(scope_of(read_export(chain, "chain"), [node_export(NODE, node)]))


def test_make_plan__a_small_export__is_one_unit_with_the_rows_that_claim_its_sequences(plan):
    [unit] = plan.units
    [serving] = unit.nodes

    assert [(each.group.group, each.ranges) for each in serving.shares] == [(0, ((1, 8),))]
    assert (unit.first_block, unit.last_block) == (1, 17)


def test_make_plan__the_same_again__has_the_same_names_and_another_key_has_others(plan):
    [unit] = plan.units
    [serving] = unit.nodes
    other = replace(serving, node=replace(serving.node, registered_key=key_of(7).public_key))

    assert planning._unit_name(unit) == unit.name
    assert planning._unit_name(replace(unit, nodes=(other,))) != unit.name
    assert planning._unit_name(replace(unit, with_signatures=False)) != unit.name
    assert planning._unit_name(replace(unit, recalled=(3,))) != unit.name


TILED = [(11, 20), (1, 0), (21, 30), (31, HIGHEST_SEQUENCE)]


def shared(groups, guesses):
    """Unit number to its ranges, by group; and which groups are left."""
    divided = divide(groups, guesses)
    shares = {
        number: {share.group.group: share.ranges for share in own}
        for number, own in divided.shares.items()
    }
    return shares, [each.group for each in divided.leftovers]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (group(0, 12, 18), {0: ((12, 18),)}),
        (group(0, 5, 20), {0: ((5, 20),)}),
        (group(0, 18, 33), {0: ((18, 20),), 2: ((21, 30),), 3: ((31, 33),)}),
        (group(0, 35, 2**64 - 1), {3: ((35, HIGHEST_SEQUENCE),)}),
        # Most lie between 19 and 22; the first unit has the odd ones, too.
        (
            replace(group(0, 2, 99), first=19, last=22),
            {0: ((2, 20), (31, 99)), 2: ((21, 30),)},
        ),
        (group(0, 1, 9), {}),
        (group(0, 12, 18, is_guided=False), {}),
    ],
)
def test_divide__a_group__goes_to_the_units_where_most_of_it_lies(own, expected):
    shares, left = shared([own], TILED)

    assert shares == {number: {0: ranges} for number, ranges in expected.items()}
    assert left == ([] if expected else [0])


@given(st.data(), st.lists(st.none() | st.integers(1, 90), min_size=1, max_size=6))
def test_divide__any_groups_and_units__each_claim_is_one_unit_s(data, firsts):
    guesses = planning._guesses(firsts)
    lowest, first, last, highest = sorted(data.draw(st.tuples(*[st.integers(0, 99)] * 4)))
    own = replace(group(0, lowest, highest), first=first, last=last)

    divided = divide([own], guesses)

    ranges = [each for shares in divided.shares.values() for s in shares for each in s.ranges]
    held = sorted(claim for a, b in ranges for claim in range(a, b + 1))
    assert held == ([] if divided.leftovers else list(range(lowest, highest + 1)))
    assert divided.leftovers == ([] if divided.shares else [own])


@pytest.mark.parametrize(
    ("firsts", "expected"),
    [
        ([1, 11, 21], [(1, 10), (11, 20), (21, HIGHEST_SEQUENCE)]),
        ([1, None, 21], [(1, 20), NOWHERE, (21, HIGHEST_SEQUENCE)]),
        # Out of order: a chain of which everything is judged.
        ([1, 30, 21], [(1, 20), NOWHERE, (21, HIGHEST_SEQUENCE)]),
        ([None], [NOWHERE]),
    ],
)
def test_guesses__first_sequences__follow_each_other_without_a_gap(firsts, expected):
    assert planning._guesses(firsts) == expected


def test_recall__some_sequences__only_those_that_a_unit_holds(plan):
    [unit] = plan.recall([99, 8, 3], {plan.units[0].name: (1, 8)})

    assert unit.recalled == (3, 8)
    assert plan.recall([99], {plan.units[0].name: (1, 8)}) == []


def test_in_order__one_that_overlaps_all_the_same__is_not_guided():
    groups = [group(2, 5, 9), group(0, 1, 3), group(1, 3, 4), group(3, 1, 0, is_guided=False)]

    found = in_order(groups, lambda each: each)

    guided = [(each.lowest, each.highest) for each in found if each.is_guided]
    assert guided == [(1, 3), (5, 9)]
    assert len(found) == len(groups)


def test_in_order__odd_claims_far_and_near__lead_nothing_astray():
    usual = {0: (1, 10), 1: (11, 20), 2: (21, 30), 3: (31, 40)}
    groups = [group(0, 1, 10), group(1, 11, 2**60), group(2, 21, 33), group(3, 31, 40)]

    def narrow(each):
        first, last = usual[each.group]
        return replace(each, first=first, last=last)

    found = in_order(groups, narrow)

    assert [(each.group, each.first, each.last) for each in found if each.is_guided] == [
        (number, *ends) for number, ends in usual.items()
    ]


def test_row_groups__one_row_claims_what_none_near_it_does__is_left_out_of_the_guidance(tmp_path):
    posts = base_posts()
    far = replace(posts[0], sequence_id=50)
    served = [post.envelope(KEY) for post in [*posts, far]]
    node = write_node(tmp_path / "node", served, KEY, is_table_right=True)

    [found] = row_groups(read_export(node, "node"))

    assert (found.lowest, found.highest) == (1, 50)
    assert (found.first, found.last, found.is_guided) == (2, 8, True)
