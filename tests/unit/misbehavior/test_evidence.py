"""Reports of safety failures, judged by the bytes of their evidence alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.misbehavior.evidence import MOST_ENVELOPES, Judgement, Weight, judge_safety
from chainkit.misbehavior.report import Report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.types import message_sent
from support import mls, publishes
from support.audit.identities import key_of
from support.damage import damaged
from support.originated import ACCUSED, KEYS, NOW_NS, OTHER, SECOND, message, report, signed
from support.payloads import commit

ORDER, DUPLICATE = Misbehavior.OUT_OF_ORDER, Misbehavior.DUPLICATE_SEQUENCE_ID
CAUSAL, PAYLOAD = Misbehavior.CAUSAL_ORDERING, Misbehavior.INVALID_PAYLOAD
CHAIN = Misbehavior.BLOCKCHAIN_INCONSISTENCY
SAFETY = [each for each in Misbehavior if not each.is_liveness]

ONE, TWO, THREE = (signed(ACCUSED, number) for number in (1, 2, 3))
TWICE = publishes.paid(publishes.group_message(target=ACCUSED) + b"\x0a\0", ACCUSED)
READ_DIFFERENTLY = signed(ACCUSED, 1, payer_envelope=TWICE)
OTHER_TWO = signed(ACCUSED, 2, seen={OTHER: 1})
EARLIER_TWO = signed(ACCUSED, 2, NOW_NS - 1)
SELF_DEPENDENT = signed(ACCUSED, 5, seen={ACCUSED: 5})
FUTURE = signed(ACCUSED, 2, NOW_NS + 301 * SECOND)
UNPAID = signed(ACCUSED, 2, payer_envelope=b"\x0a\x00")
OF_CHAIN, OF_CHAIN_BY_OTHER = (
    sign_originator_envelope(
        unsigned_originator_envelope(
            message_sent(b"\1" * 32, commit(b"\1" * 32), 7), 1_700_000_000
        ),
        b"t" * 32,
        key_of(node_id),
    )
    for node_id in (ACCUSED, OTHER)
)
CYCLE = (signed(ACCUSED, 4, seen={OTHER: 9}), signed(OTHER, 9, seen={ACCUSED: 4}))


def judged(accusation: Report, now_ns: int = NOW_NS) -> Judgement:
    return judge_safety(accusation, KEYS, now_ns)


PROVED = [
    (ORDER, (EARLIER_TWO, ONE), "time goes back from 1 to 2"),
    (ORDER, (ONE, EARLIER_TWO), "time goes back from 1 to 2"),
    (ORDER, (FUTURE,), "2 lies in the future"),
    (ORDER, (FUTURE, ONE), "2 lies in the future"),
    (DUPLICATE, (TWO, OTHER_TWO), "two different envelopes 2"),
    (DUPLICATE, (ONE, TWO, THREE, OTHER_TWO), "two different envelopes 2"),
    (CAUSAL, (SELF_DEPENDENT,), "5 depends on itself or a later one"),
    (CAUSAL, (signed(ACCUSED, 5, seen={ACCUSED: 6}),), "5 depends on itself or a later one"),
    (PAYLOAD, (UNPAID,), "2: payer signature recovers to nobody"),
    (PAYLOAD, (signed(ACCUSED, 2, payer_envelope=message(OTHER)),), "target originator is another"),
]
CLAIMED = [
    (ORDER, (THREE, ONE), "3 came after 1"),
    (ORDER, (THREE,), "3 came after 0"),
    (ORDER, (ONE, TWO), "1 came after 2"),
    (CAUSAL, (signed(ACCUSED, 2, seen={OTHER: 8}),), "a dependency is said to be missing"),
    (CAUSAL, CYCLE, "one of several originators lied"),
    *((each, (OF_CHAIN,), "to be compared with the chain") for each in SAFETY),
]
REFUTED = [
    (ORDER, (TWO, ONE), "2 follows 1, and time does not go back"),
    (ORDER, (ONE,), "1 follows 0"),
    (ORDER, (TWO, TWO), "time does not go back"),
    (ORDER, (signed(ACCUSED, 2, NOW_NS + 300 * SECOND), ONE), "2 follows 1"),
    (ORDER, (THREE, signed(OTHER, 1)), "envelopes of several originators"),
    (DUPLICATE, (TWO, TWO), "no two envelopes of node 100 with one id differ"),
    (DUPLICATE, (ONE, TWO), "no two envelopes of node 100 with one id differ"),
    (CAUSAL, (ONE,), "it depends on nothing"),
    (CAUSAL, (CYCLE[0], signed(OTHER, 9)), "no cycle: 9 of originator 200 does not depend"),
    (PAYLOAD, (ONE,), "its payload keeps the rules"),
    (PAYLOAD, (READ_DIFFERENTLY,), "its payload keeps the rules"),
    *((each, (signed(OTHER, 1),), "node 100 signed none") for each in (ORDER, PAYLOAD)),
    *((each, (signed(ACCUSED, 1, key=key_of(OTHER)),), "signature of node 100") for each in SAFETY
      if each is not CHAIN),
    *((each, (b"\xff",), "no message") for each in SAFETY if each is not CHAIN),
    (CHAIN, (b"\xff",), "an OriginatorEnvelope"),
    *((each, (OF_CHAIN, OF_CHAIN_BY_OTHER), "node 100 did not sign it") for each in SAFETY),
    *((each, (), "expected 1 to 16 envelopes") for each in SAFETY),
    *((each, (ONE,) * (MOST_ENVELOPES + 1), "expected 1 to 16 envelopes") for each in SAFETY),
    *((each, (ONE,), "is no safety failure") for each in Misbehavior if each.is_liveness),
]  # fmt: skip


@pytest.mark.conforms("3.2.7-3")
@pytest.mark.parametrize(("misbehavior", "envelopes", "words"), PROVED)
def test_judge__the_accused_signed_what_no_honest_node_signs__is_proved(
    misbehavior: Misbehavior, envelopes: tuple[bytes, ...], words: str
) -> None:
    judgement = judged(report(ACCUSED, misbehavior, *envelopes))

    assert (judgement.weight, words in judgement.reason) == (Weight.PROVED, True), judgement


@pytest.mark.parametrize(("misbehavior", "envelopes", "words"), CLAIMED)
def test_judge__evidence_that_an_honest_node_may_have_signed__is_claimed(
    misbehavior: Misbehavior, envelopes: tuple[bytes, ...], words: str
) -> None:
    judgement = judged(report(ACCUSED, misbehavior, *envelopes))

    assert (judgement.weight, words in judgement.reason) == (Weight.CLAIMED, True), judgement
    assert judgement.needs_chain is (envelopes == (OF_CHAIN,))


@pytest.mark.parametrize(("misbehavior", "envelopes", "words"), REFUTED)
def test_judge__evidence_that_does_not_show_it__is_refuted(
    misbehavior: Misbehavior, envelopes: tuple[bytes, ...], words: str
) -> None:
    judgement = judged(report(ACCUSED, misbehavior, *envelopes))

    assert (judgement.weight, words in judgement.reason) == (Weight.REFUTED, True), judgement


def test_judge__node_that_is_not_registered__is_refuted() -> None:
    for envelopes in ((signed(900, 1),), (ONE, signed(900, 1))):
        node_id = 900 if len(envelopes) == 1 else ACCUSED
        judgement = judged(report(node_id, PAYLOAD, *envelopes))
        assert judgement.weight is Weight.REFUTED
        assert "900" in judgement.reason


def test_judge__two_envelopes_of_a_liar__do_not_accuse_the_honest_node_beside_it() -> None:
    invalid = signed(OTHER, 4, payer_envelope=b"\x0a\x00")
    lies = (
        *(signed(OTHER, 2), signed(OTHER, 2, NOW_NS - 1), signed(OTHER, 3, seen={OTHER: 3})),
        invalid,
    )

    for misbehavior in SAFETY:
        accusation = report(ACCUSED, misbehavior, *lies, ONE)
        assert judged(accusation).weight is not Weight.PROVED
    for misbehavior in (DUPLICATE, CAUSAL, PAYLOAD):
        assert judged(report(OTHER, misbehavior, *lies, ONE)).weight is Weight.PROVED


def test_judge__future_by_the_reporters_clock_alone__is_claimed() -> None:
    accusation = report(ACCUSED, ORDER, FUTURE, ONE)

    later = judged(accusation, NOW_NS + SECOND)

    assert (later.weight, later.reason) == (
        *(Weight.CLAIMED, "2 lay in the future by the reporter's clock"),
    )


@pytest.mark.parametrize(("misbehavior", "envelopes", "_"), [PROVED[0], PROVED[4], PROVED[6]])
def test_judge__same_failure_with_more_beside_it__has_the_same_subject(
    misbehavior: Misbehavior, envelopes: tuple[bytes, ...], _: str
) -> None:
    more = signed(ACCUSED, 9)
    alone = judged(report(ACCUSED, misbehavior, *envelopes))

    assert judged(report(ACCUSED, misbehavior, *envelopes, more)).subject == alone.subject
    assert judged(report(ACCUSED, misbehavior, *envelopes[::-1], more)).subject == alone.subject
    assert judged(report(ACCUSED, PAYLOAD, UNPAID)).subject != alone.subject


# ------------------------------------------------------------------ whatever strangers send

PIECES = st.sampled_from([ONE, TWO, OTHER_TWO, UNPAID, OF_CHAIN, *CYCLE, FUTURE])
ANY_ENVELOPE = st.one_of(st.binary(max_size=40), PIECES, PIECES.flatmap(damaged))


@given(
    st.builds(
        Report,
        st.sampled_from([0, ACCUSED, OTHER, 900]),
        st.sampled_from(Misbehavior),
        st.integers(0, 2**64 - 1),
        st.booleans(),
        st.lists(ANY_ENVELOPE, max_size=5).map(tuple),
        st.none() | st.integers(0, 2**32 - 1),
    ),
    st.integers(0, 2**64),
)
def test_judge__any_report__is_judged(accusation: Report, now_ns: int) -> None:
    judgement = judge_safety(accusation, KEYS, now_ns)

    assert judgement.weight in Weight
    assert len(judgement.subject) == 32
    assert judgement.reason.isprintable()


@st.composite
def honest_history(draw: st.DrawFn, node_id: int) -> list[bytes]:
    """Gapless ids, times that do not go back, and payloads that keep the rules."""
    time_ns = NOW_NS - 600 * SECOND
    envelopes = []
    for sequence_id in range(1, draw(st.integers(1, 5)) + 1):
        time_ns += draw(st.integers(0, 300 * SECOND)) // 5
        seen = draw(st.dictionaries(st.sampled_from([0, OTHER, 300]), st.integers(0, 9)))
        seen[node_id] = draw(st.integers(0, sequence_id - 1))
        paid = draw(st.sampled_from(["message", "welcome", "key package"]))
        payload = {
            "message": message(node_id, seen),
            "welcome": publishes.paid(publishes.welcome(), node_id),
            "key package": publishes.paid(publishes.key_package(), node_id),
        }[paid]
        least = time_ns // SECOND + 86_400
        expiry = draw(st.none() | st.integers(least, least + 10**6))
        envelopes.append(signed(node_id, sequence_id, time_ns, payload, expiry))
    return envelopes


LIES = [
    *(signed(300, 1), signed(300, 1, NOW_NS - 1), signed(300, 2, seen={300: 2})),
    signed(300, 3, payer_envelope=b"\x0a\x00"),
]


@pytest.mark.conforms("3.2.7-3")
@given(honest_history(ACCUSED), honest_history(OTHER), st.data())
def test_judge__honest_node__is_never_proved_guilty(
    own: list[bytes], others: list[bytes], data: st.DataObject
) -> None:
    pool = [*own, *others, *LIES, OF_CHAIN]
    envelopes = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=8))
    accused = data.draw(st.sampled_from([ACCUSED, OTHER]))
    misbehavior = data.draw(st.sampled_from(Misbehavior))
    reported_ns = data.draw(st.integers(0, 2 * NOW_NS))
    late = data.draw(st.integers(0, 10**12))

    accusation = report(accused, misbehavior, *envelopes, reported_ns=reported_ns)

    assert judged(accusation, NOW_NS + late).weight is not Weight.PROVED


@given(st.integers(0, 299), st.integers(0, 299), st.integers(0, 299))
def test_judge__key_package_that_expired_while_it_waited_for_its_time__proves_nothing(
    before: int, after: int, waited: int
) -> None:
    judged_at = mls.SECONDS
    lifetime = (judged_at - before, judged_at + after)
    package = mls.KeyPackageFields(lifetime=lifetime).written()
    paid = publishes.paid(publishes.key_package(package), ACCUSED)
    envelope = signed(ACCUSED, 1, (judged_at + waited) * SECOND, paid)

    weight = judged(report(ACCUSED, PAYLOAD, envelope), NOW_NS + 300 * SECOND).weight

    assert weight is Weight.REFUTED
