"""How a page is established before it is signed: by receipts, by a second endpoint, or not."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.errors import (
    AccessRefused,
    ChainError,
    Disproved,
    EndpointTimedOut,
    InconsistentAnswer,
    OversizedAnswer,
    Unconfirmed,
)
from chainkit_indexer.follow.provenance import Established
from chainkit_indexer.types import Provenance
from support.chains.fake_chain import FIRST_BLOCK
from support.chains.sealed import resealed
from support.indexer.trial import (
    LAST,
    ONE_RECEIPT,
    POSTS,
    RECEIPTS,
    WITHOUT,
    Tamper,
    Trial,
    honest,
)


@pytest.fixture
def trial() -> Trial:
    return Trial()


def cut_logs(method: str, params: Any, result: Any) -> Any:
    return result[:-1] if method == "eth_getLogs" else result


def other_data(method: str, params: Any, result: Any) -> Any:
    if method != "eth_getLogs":
        return result
    return [log | {"data": log["data"][:-1] + "1"} for log in result]


def more_fields(method: str, params: Any, result: Any) -> Any:
    """A chain whose headers have a field that nobody knows here."""
    if method != "eth_getBlockByNumber" or result is None:
        return result
    return result | {"newRoot": "0x07", "stateRoot": "0x" + "07" * 32}


def lacking(number: int, method: str, name: str) -> Tamper:
    """An endpoint whose answer of one block lacks a field, in the first of its parts."""

    def tamper(asked: str, params: Any, result: Any) -> Any:
        is_whole = asked == RECEIPTS or (asked == "eth_getBlockByNumber" and params[1])
        if asked != method or params[0] != hex(number) or not is_whole:
            return result
        parts = result if asked == RECEIPTS else result["transactions"]
        first = {key: value for key, value in parts[0].items() if key != name}
        return [first, *parts[1:]] if asked == RECEIPTS else result | {"transactions": [first]}

    return tamper


def lacking_in_header(number: int, name: str) -> Tamper:
    def tamper(asked: str, params: Any, result: Any) -> Any:
        if asked != "eth_getBlockByNumber" or params[0] != hex(number):
            return result
        return {key: value for key, value in result.items() if key != name}

    return tamper


UNPROVED = [
    (
        lacking(LAST, "eth_getBlockByNumber", "nonce"),
        r"got transaction 0 of block 5: .*\(field nonce\)",
    ),
    (lacking(LAST, "eth_getBlockByNumber", "r"), r"\(field r\)"),
    (lacking(LAST, RECEIPTS, "status"), r"got receipt 0 of block 5: .*\(field status\)"),
    (lacking(LAST, RECEIPTS, "cumulativeGasUsed"), r"\(field cumulativeGasUsed\)"),
    (lacking_in_header(LAST, "baseFeePerGas"), r"it may lack baseFeePerGas \(London\)"),
    (lacking_in_header(LAST, "stateRoot"), "stateRoot"),
]


@pytest.mark.parametrize(("tamper", "why"), UNPROVED, ids=[why for _, why in UNPROVED])
def test_establish__field_left_out_of_the_last_block__takes_what_is_before_it(
    trial: Trial, tamper: Tamper, why: str
) -> None:
    asked = trial.endpoint("first", tamper)

    assert trial.established(asked) == Established(Provenance.RECEIPTS, len(POSTS) - 1)
    with pytest.raises(Unconfirmed, match=why):
        trial.established(asked, first=len(POSTS) - 1)


@pytest.mark.parametrize(("tamper", "why"), UNPROVED, ids=[why for _, why in UNPROVED])
def test_establish__field_left_out__a_second_endpoint_or_the_operators_word_is_enough(
    trial: Trial, tamper: Tamper, why: str
) -> None:
    asked, last = trial.endpoint("first", tamper), len(POSTS) - 1
    trusting = trial.prover(trusts_one_endpoint=True)

    assert trial.established(asked, trusting, first=last).provenance is Provenance.ONE_ENDPOINT
    trial.others = [trial.endpoint("second").endpoint]
    assert trial.established(asked, first=last).provenance is Provenance.SECOND_ENDPOINT


@pytest.mark.parametrize("name", ["logsBloom", "type", "blockHash", "gasUsed"])
def test_establish__receipts_without_what_follows__are_proved(trial: Trial, name: str) -> None:
    asked = trial.endpoint("first", lacking(FIRST_BLOCK, RECEIPTS, name))

    assert trial.establish(asked) is Provenance.RECEIPTS


def test_establish__other_receipts_without_a_block__are_not_proved_and_no_lie(
    trial: Trial,
) -> None:
    def other(method: str, params: Any, result: Any) -> Any:
        if method != RECEIPTS:
            return result
        return [each | {"blockHash": None, "cumulativeGasUsed": "0x1"} for each in result]

    with pytest.raises(Unconfirmed, match="without blockHash"):
        trial.establish(trial.endpoint("first", other))


def test_establish__receipts_offered__proves_blocks_that_may_have_payloads(trial: Trial) -> None:
    asked = trial.endpoint("first")

    assert trial.establish(asked) is Provenance.RECEIPTS

    # The block between has no payload by its filter, which its hash proves.
    assert asked.asked.count(RECEIPTS) == 2


@pytest.mark.parametrize("tamper", [cut_logs, other_data])
def test_establish__logs_that_receipts_contradict__are_disproved(
    trial: Trial, tamper: Tamper
) -> None:
    # Neither a second endpoint nor the operator's trust makes up for that.
    trial.others = [trial.endpoint("second", tamper).endpoint]
    asked, prover = trial.endpoint("first", tamper), trial.prover(trusts_one_endpoint=True)

    with pytest.raises(Disproved, match=r"logs of blocks 3 to 5 at first: expected .*\(block"):
        trial.establish(asked, prover)


def test_establish__invented_log__is_disproved(trial: Trial) -> None:
    def invent(method: str, params: Any, result: Any) -> Any:
        if method != "eth_getLogs" or not result or result[0]["blockNumber"] != hex(LAST):
            return result
        return [*result, result[-1] | {"logIndex": "0x9"}]

    with pytest.raises(Disproved, match="expected no log there, got another log"):
        trial.establish(trial.endpoint("first", invent))


@pytest.mark.parametrize("tamper", [honest, more_fields])
def test_establish__nothing_to_prove_with__takes_a_second_endpoint(
    trial: Trial, tamper: Tamper
) -> None:
    trial.others = [trial.endpoint("second", tamper, WITHOUT).endpoint]

    assert trial.establish(trial.endpoint("first", tamper, WITHOUT)) is Provenance.SECOND_ENDPOINT


@pytest.mark.parametrize("tamper", [cut_logs, other_data])
def test_establish__second_endpoint_says_otherwise__is_not_chosen_between(
    trial: Trial, tamper: Tamper
) -> None:
    trial.others = [trial.endpoint("second", honest, WITHOUT).endpoint]
    prover = trial.prover(trusts_one_endpoint=True)

    with pytest.raises(InconsistentAnswer, match="at second: expected the logs of first"):
        trial.establish(trial.endpoint("first", tamper, WITHOUT), prover)


def test_establish__second_endpoint_on_another_branch__names_both(trial: Trial) -> None:
    def elsewhere(method: str, params: Any, result: Any) -> Any:
        return resealed(result, extraData="0x01") if method == "eth_getBlockByNumber" else result

    trial.others = [trial.endpoint("second", elsewhere, WITHOUT).endpoint]

    with pytest.raises(InconsistentAnswer, match=r"at second: expected block 3 0x.* as at first"):
        trial.establish(trial.endpoint("first", refused=WITHOUT))


def test_establish__one_of_two_others_agrees__is_enough(trial: Trial) -> None:
    trial.others = [
        trial.endpoint("second", cut_logs, WITHOUT).endpoint,
        trial.endpoint("third", honest, WITHOUT).endpoint,
    ]

    assert trial.establish(trial.endpoint("first", refused=WITHOUT)) is Provenance.SECOND_ENDPOINT


def test_establish__second_endpoint_lags__waits(trial: Trial) -> None:
    def lag(method: str, params: Any, result: Any) -> Any:
        is_newest = method == "eth_getBlockByNumber" and params[0] == hex(LAST)
        return None if is_newest else result

    trial.others = [trial.endpoint("second", lag).endpoint]

    with pytest.raises(Unconfirmed, match="blocks 3 to 5 at second: expected all blocks of first"):
        trial.establish(trial.endpoint("first", refused=WITHOUT))


@pytest.mark.parametrize(
    ("tamper", "refused", "why"),
    [
        (honest, WITHOUT, "no receipts"),
        (more_fields, (), "the header of block 3 with fields that are not known here"),
    ],
)
def test_establish__one_endpoint_that_proves_nothing__needs_the_operators_word(
    trial: Trial, tamper: Tamper, refused: tuple[str, ...], why: str
) -> None:
    asked = trial.endpoint("first", tamper, refused)

    with pytest.raises(Unconfirmed, match=f"{why}.*--trust-one-endpoint"):
        trial.establish(asked)

    assert trial.establish(asked, trial.prover(True)) is Provenance.ONE_ENDPOINT


def test_establish__no_receipts_once__are_asked_for_again_later(trial: Trial) -> None:
    asked, prover = trial.endpoint("first", refused=WITHOUT), trial.prover(True)
    for _ in range(3):
        assert trial.establish(asked, prover) is Provenance.ONE_ENDPOINT
    assert asked.asked.count(RECEIPTS) == asked.asked.count(ONE_RECEIPT) - 1 == 2

    asked.refused = (RECEIPTS,)
    trial.now = 600.0

    assert trial.establish(asked, prover) is Provenance.RECEIPTS


def test_establish__no_receipts_by_block__are_proved_one_by_one(trial: Trial) -> None:
    asked, prover = trial.endpoint("first", refused=(RECEIPTS,)), trial.prover()

    for _ in range(3):
        assert trial.establish(asked, prover) is Provenance.RECEIPTS

    # In vain with the first page alone: for the two of its blocks that may have payloads.
    assert asked.asked.count(RECEIPTS) == 2


@pytest.mark.parametrize("others", [0, 1])
def test_establish__one_receipt_is_not_known__is_not_proved_and_no_lie(
    trial: Trial, others: int
) -> None:
    def forgotten(method: str, params: Any, result: Any) -> Any:
        return None if method == ONE_RECEIPT else result

    asked = trial.endpoint("first", forgotten, (RECEIPTS,))
    trial.others = [trial.endpoint("second").endpoint] * others

    if others:
        assert trial.establish(asked) is Provenance.SECOND_ENDPOINT
    else:
        with pytest.raises(Unconfirmed, match=r"receipts of block 3: .* null for"):
            trial.establish(asked)


def test_establish__access_refused__is_no_missing_method(trial: Trial) -> None:
    def shut(method: str, params: Any, result: Any) -> Any:
        if method == RECEIPTS:
            raise AccessRefused("first", "HTTP 200", "HTTP 403")
        return result

    with pytest.raises(AccessRefused):
        trial.establish(trial.endpoint("first", shut), trial.prover(True))


@pytest.mark.parametrize(
    "error", [EndpointTimedOut("first", "an answer", "a time-out"), OversizedAnswer("a", "b", "c")]
)
def test_establish__receipts_too_many_for_the_endpoint__takes_a_second_one(
    trial: Trial, error: ChainError
) -> None:
    def fail(method: str, params: Any, result: Any) -> Any:
        if method == RECEIPTS:
            raise error
        return result

    asked = trial.endpoint("first", fail)
    with pytest.raises(Unconfirmed):
        trial.establish(asked)
    trial.others = [trial.endpoint("second").endpoint]

    assert trial.establish(asked) is Provenance.SECOND_ENDPOINT


@pytest.mark.parametrize("deep", [True, False])
def test_establish__mostly_receipts_of_others__takes_a_second_endpoint_below_the_head(
    trial: Trial, deep: bool
) -> None:
    def crowded(method: str, params: Any, result: Any) -> Any:
        if method == "eth_getBlockByNumber" and not params[1]:
            return result | {"transactions": ["0x" + "00" * 32] * 40}
        return result

    asked = trial.endpoint("first", crowded)
    assert trial.establish(asked, deep=deep) is Provenance.RECEIPTS
    trial.others = [trial.endpoint("second").endpoint]

    found = trial.establish(asked, deep=deep)

    assert found is (Provenance.SECOND_ENDPOINT if deep else Provenance.RECEIPTS)


def test_establish__second_endpoint_gives_narrow_ranges__is_asked_for_parts(trial: Trial) -> None:
    narrow = trial.endpoint("second")
    answer = narrow.make_request

    def refuse(method: Any, params: Any) -> Any:
        if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
            return {"id": 1, "error": {"code": -32005, "message": "query exceeds 1 block range"}}
        return answer(method, params)

    narrow.make_request = refuse  # type: ignore[method-assign]
    trial.others = [narrow.endpoint]

    assert trial.establish(trial.endpoint("first", refused=WITHOUT)) is Provenance.SECOND_ENDPOINT
