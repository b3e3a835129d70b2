"""A unit, done without Spark: what it counts, and the rows that it returns."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from chainkit_jobs.reconcile.screening.plan import Plan, make_plan
from chainkit_jobs.reconcile.screening.results import (
    CHAIN,
    FORBIDDEN,
    QUARANTINED,
    RESULTS,
    SERVED,
    read_summary,
)
from chainkit_jobs.reconcile.screening.rules import PostingRules, Rule
from chainkit_jobs.reconcile.screening.unit import run_leftover, run_unit
from chainkit_jobs.sources import read_export
from support.audit.audit_exports import (
    Post,
    base_posts,
    honest,
    registered,
    write_chain,
    write_node,
)
from support.audit.identities import key_of
from support.audit.scopes import node_export, scope_of

NODE = 100
KEY = key_of(NODE)


def plan_of(
    root: Path,
    envelopes: Sequence[bytes],
    posts: Sequence[Post] | None = None,
    rules: PostingRules = PostingRules(),  # noqa: B008
) -> Plan:
    chain = write_chain(root / "chain", posts or base_posts(), [registered(NODE)])
    node = write_node(root / "node", envelopes, KEY, is_table_right=True)
    plan = make_plan(
        scope_of(read_export(chain, "chain"), [node_export(NODE, node)], with_tables=True)
    )
    return replace(plan, units=tuple(replace(unit, rules=rules) for unit in plan.units))


def results(batches):
    rows = pa.Table.from_batches(list(batches), schema=RESULTS).to_pylist()
    [summary] = [read_summary(row["summary"]) for row in rows if row["summary"]]
    return summary, rows


def sequences(rows, kind):
    return [int(row["sequence_id"]) for row in rows if row["kind"] == kind]


def claims(rows):
    return [int(row["claimed_sequence_id"]) for row in rows if row["kind"] == SERVED]


def test_run_unit__honest_node__counts_everything_and_returns_what_is_in_quarantine(tmp_path):
    plan = plan_of(tmp_path, honest(base_posts(), KEY))

    summary, rows = results(run_unit(plan.units[0]))

    count = summary.nodes[NODE]
    assert (sequences(rows, CHAIN), sequences(rows, QUARANTINED), claims(rows)) == ([], [4], [])
    assert [sum(each.values()) for each in (count.valid, count.required, count.matched)] == [7] * 3
    assert (summary.payloads, summary.quarantined, summary.is_consecutive) == (8, 1, True)
    assert (summary.first_sequence, summary.last_sequence) == (1, 8)
    assert (plan.leftovers, summary.possibly_misplaced) == ((), 0)


def test_run_unit__one_missing_one_wrong_and_one_beyond__are_returned(tmp_path):
    posts = base_posts()
    wrong = replace(posts[2], block=13)
    beyond = replace(posts[0], sequence_id=50)
    served = [posts[0], wrong, *posts[4:], beyond]
    plan = plan_of(tmp_path, [post.envelope(KEY) for post in served])

    summary, rows = results(run_unit(plan.units[0]))

    assert (plan.leftovers, summary.possibly_misplaced) == ((), 1)
    assert sequences(rows, CHAIN) == [2, 3]
    assert claims(rows) == [3, 50]
    assert sum(summary.nodes[NODE].matched.values()) == 5


def test_run_leftover__a_group_that_no_unit_was_given__is_returned_whole(tmp_path):
    beyond = [replace(post, sequence_id=post.sequence_id - 1) for post in base_posts()[:1]]
    plan = plan_of(tmp_path, [post.envelope(KEY) for post in beyond])
    [leftover] = plan.leftovers

    summary, rows = results(run_leftover(leftover))

    assert (summary.possibly_misplaced, claims(rows)) == (1, [0])


def test_run_unit__another_sequence_than_claimed__returns_the_payloads_of_both(tmp_path):
    posts = base_posts()
    served = [post.envelope(KEY) for post in [*posts[:4], replace(posts[4], sequence_id=7)]]
    plan = plan_of(tmp_path, [*served, *(post.envelope(KEY) for post in posts[5:])])
    [unit] = plan.units

    summary, rows = results(run_unit(unit))

    assert summary.possibly_misplaced == 0
    assert 7 in sequences(rows, CHAIN)


def test_run_unit__recalled__is_returned_with_its_counts_and_nothing_else(tmp_path):
    plan = plan_of(tmp_path, honest(base_posts()[1:], KEY))
    [again] = plan.recall([1, 2, 4], {plan.units[0].name: (1, 8)})

    summary, rows = results(run_unit(again))

    count = summary.nodes[NODE]
    # 1 is missing, and was returned at once; 4 is in quarantine, and was right.
    assert (sequences(rows, CHAIN), claims(rows)) == ([2, 4], [2])
    assert [sum(each.values()) for each in (count.valid, count.required, count.matched)] == [1] * 3


def test_run_unit__payload_while_paused__is_returned(tmp_path):
    paused = PostingRules((Rule(True, (11, 0), (12, 2000), 1, 0),))
    plan = plan_of(tmp_path, honest(base_posts(), KEY), rules=paused)

    _, rows = results(run_unit(plan.units[0]))

    # The payload of block 11 is an identity update's.
    assert sequences(rows, CHAIN) == sequences(rows, FORBIDDEN) == claims(rows) == [3]


def test_run_unit__logs_that_stand_in_another_order__do_not_follow_each_other(tmp_path):
    posts = base_posts()
    posts[6] = replace(posts[6], block=9)

    summary, _ = results(run_unit(plan_of(tmp_path, [], posts).units[0]))

    assert not summary.is_consecutive


def test_run_unit__statistics_that_lie__name_the_node_and_no_other_counts(tmp_path):
    plan = plan_of(tmp_path, honest(base_posts(), KEY))
    [unit] = plan.units
    [serving] = unit.nodes
    shares = tuple(
        replace(share, group=replace(share.group, highest=5)) for share in serving.shares
    )
    lying = replace(unit, nodes=(replace(serving, shares=shares),))

    summary, _ = results(run_unit(lying))

    assert list(summary.unreadable) == [NODE]
    assert "whose statistics say 1 to 5" in summary.unreadable[NODE]
    assert summary.payloads == 8
