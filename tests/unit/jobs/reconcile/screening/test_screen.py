"""Screening held against a model that looks at each row by itself."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit_jobs.reconcile.screening.chain_rows import chain_rows
from chainkit_jobs.reconcile.screening.node_rows import Rows
from chainkit_jobs.reconcile.screening.screen import ScreenedNode, pick, screen
from support.audit.audit_exports import MALFORMED_SEQUENCE, base_posts, payload_log
from support.audit.identities import key_of
from support.audit.screening import CONTRACTS, batch, times

NODE = 100
KEY = key_of(NODE)
POSTS = base_posts()


def chain(posts=None):
    logs = [payload_log(post) for post in (POSTS if posts is None else posts)]
    return chain_rows(batch(logs), times(range(1, 21)), CONTRACTS)


def rows(served):
    """Rows of (claim, envelope)."""
    return Rows(
        np.array([claim for claim, _ in served], np.uint64),
        np.arange(len(served), dtype=np.int64),
        pa.array([envelope for _, envelope in served], pa.binary()),
    )


def node(first_block=1, last_block=20):
    return ScreenedNode(NODE, KEY.public_key, first_block, last_block)


def doubtful(found):
    return {post.sequence_id for post, is_so in zip(POSTS, found.doubtful, strict=True) if is_so}


def sequence_of(envelope):
    with suppress(MalformedEnvelope):
        return parse_originator_envelope(envelope).sequence_id


RIGHT = {p.sequence_id: p.envelope(KEY) for p in POSTS if p.sequence_id != MALFORMED_SEQUENCE}
KINDS = {
    "right": lambda post: (post.sequence_id, post.envelope(KEY)),
    "of another time": lambda post: (
        post.sequence_id,
        replace(post, block=post.block + 1).envelope(KEY),
    ),
    "of another sequence": lambda post: (
        post.sequence_id,
        replace(post, sequence_id=post.sequence_id + 1).envelope(KEY),
    ),
    "of a stranger": lambda post: (post.sequence_id, post.envelope(key_of(200))),
    "claims another": lambda post: (post.sequence_id + 1, post.envelope(KEY)),
    "claims none of the chain's": lambda post: (post.sequence_id + 50, post.envelope(KEY)),
    "cut": lambda post: (post.sequence_id, post.envelope(KEY)[:-1]),
    "empty": lambda post: (post.sequence_id, b""),
}


@given(
    st.lists(st.tuples(st.sampled_from(POSTS), st.sampled_from(sorted(KINDS))), max_size=14),
    st.booleans(),
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_screen__any_rows__what_is_right_and_single_is_matched_and_all_else_is_judged(
    picked, with_signatures, first_block, last_block
):
    served = [KINDS[kind](post) for post, kind in picked]
    bounds = node(first_block, last_block)

    found = screen(chain(), {NODE: rows(served)}, [bounds], with_signatures=with_signatures)

    def is_right(claim, envelope):
        if with_signatures:
            return RIGHT.get(claim) == envelope
        return claim in RIGHT and RIGHT[claim][:-65] == envelope[:-65] and len(envelope) > 65

    expected = set()
    for post in POSTS:
        own = [row for row in served if row[0] == post.sequence_id]
        is_required = post.sequence_id in RIGHT and first_block <= post.block <= last_block
        if len(own) > 1 or (own and not is_right(*own[0])) or (is_required and not own):
            expected.add(post.sequence_id)
    known = {post.sequence_id for post in POSTS}
    odd = [each for claim, each in served if claim in expected or claim not in known]
    actual = [each for each in map(sequence_of, odd) if each is not None]
    expected |= known.intersection(actual)
    assert doubtful(found) == expected
    assert found.possibly_misplaced == sum(each not in known for each in actual)
    judged = set(found.rows[NODE].row_indexes.tolist())
    assert judged == {
        number
        for number, (claim, _) in enumerate(served)
        if claim in expected or claim not in known
    }
    matched = {post.sequence_id for post, m in zip(POSTS, found.matched[NODE], strict=True) if m}
    assert matched == {claim for claim, _ in served} & set(RIGHT) - expected


def test_screen__two_nodes_and_one_is_wrong__the_other_s_row_is_judged_beside_it():
    right = rows(list(RIGHT.items()))
    wrong = rows(
        [(n, KINDS["of another time"](POSTS[2])[1] if n == 3 else e) for n, e in RIGHT.items()]
    )
    other = ScreenedNode(200, KEY.public_key, 1, 20)

    found = screen(chain(), {NODE: right, 200: wrong}, [node(), other], with_signatures=True)

    assert doubtful(found) == {3}
    assert found.rows[NODE].claims.tolist() == found.rows[200].claims.tolist() == [3]
    assert found.matched[NODE].sum() == len(RIGHT) - 1


def test_screen__sequence_that_does_not_count_by_one__everything_is_doubtful():
    posts = [post for post in POSTS if post.sequence_id != 5]

    found = screen(chain(posts), {NODE: rows(list(RIGHT.items()))}, [node()], with_signatures=True)

    assert found.doubtful.all()
    assert len(found.rows[NODE]) == len(RIGHT)


def test_screen__payload_that_was_forbidden__is_judged_though_it_is_right():
    forbidden = np.zeros(len(POSTS), np.bool_)
    forbidden[0] = True

    found = screen(
        chain(),
        {NODE: rows(list(RIGHT.items()))},
        [node()],
        with_signatures=True,
        forbidden=forbidden,
    )

    assert doubtful(found) == {1}


def test_pick__a_right_sequence_and_a_doubtful_one__only_the_right_one_with_its_counts():
    served = {NODE: rows([(n, e) for n, e in RIGHT.items() if n != 6])}
    found = screen(chain(), served, [node()], with_signatures=True)
    wanted = np.isin(chain().sequence_ids, np.array([2, 6], np.uint64))

    again = pick(found, chain(), served, wanted)

    assert doubtful(again) == {2}
    assert again.rows[NODE].claims.tolist() == [2]
    assert again.matched[NODE].sum() == again.required[NODE].sum() == 1


def test_screen__node_was_asked__what_it_did_not_reach_is_not_doubtful():
    asked = replace(node(), answered_to=5)
    served = {NODE: rows([(number, RIGHT[number]) for number in (1, 2, 5)])}

    found = screen(chain(), served, [asked], with_signatures=True)

    assert doubtful(found) == {3}
    assert found.required[NODE].tolist() == [True, True, True, False, True, False, False, False]
