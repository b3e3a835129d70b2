"""Payer reports as bytes: signed, read by others, attested, and one total proved."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from chainkit.errors import MalformedData
from chainkit.protocol.payer_reports import (
    MOST_IDS,
    PayerReport,
    PayerTotal,
    attest,
    is_attested_by,
    needed_signatures,
    read_report,
    sign_report,
    verify_total,
    written_report,
)
from chainkit.protocol.proto import node_api_pb2
from chainkit.signatures import SigningKey

KEY, OTHER = SigningKey(b"\3" * 32), SigningKey(b"\4" * 32)
KEYS = {100: KEY.public_key}
TOTALS = [PayerTotal(bytes([each]) * 20, each, each * 100, each * 3000) for each in range(1, 6)]
REPORT = PayerReport(100, 11, 30, [range(12, 14), range(30, 31)], 2, TOTALS)


def read(message: node_api_pb2.SignedPayerReport) -> PayerReport:
    return read_report(message, KEYS).report


def test_read__signed_report__is_what_was_signed() -> None:
    signed = replace(sign_report(REPORT, KEY), attestations={200: attest(REPORT, 200, OTHER)})
    data = written_report(signed).SerializeToString()

    found = read_report(node_api_pb2.SignedPayerReport.FromString(data), KEYS)

    assert found == signed
    found.report.check()
    assert is_attested_by(found.report, 200, found.attestations[200], OTHER.public_key)


def test_attestation__of_another_node_or_key__counts_nothing() -> None:
    signature = attest(REPORT, 200, OTHER)

    assert not is_attested_by(REPORT, 300, signature, OTHER.public_key)
    assert not is_attested_by(REPORT, 200, signature, KEY.public_key)
    assert not is_attested_by(replace(REPORT, last_id=31), 200, signature, OTHER.public_key)
    assert not is_attested_by(REPORT, 200, sign_report(REPORT, OTHER).signature, OTHER.public_key)
    assert not is_attested_by(REPORT, 200, b"", OTHER.public_key)


def changed(**fields: object) -> node_api_pb2.SignedPayerReport:
    return written_report(sign_report(replace(REPORT, **fields), KEY))  # type: ignore[arg-type]


def other_total(message: node_api_pb2.SignedPayerReport) -> None:
    message.payers.totals[1].messages += 1


def other_signer(message: node_api_pb2.SignedPayerReport) -> None:
    message.CopyFrom(written_report(sign_report(REPORT, OTHER)))


def other_form(message: node_api_pb2.SignedPayerReport) -> None:
    unsigned = REPORT.unsigned + b"\x78\x01"
    message.unsigned_payer_report = unsigned


def no_report(message: node_api_pb2.SignedPayerReport) -> None:
    message.unsigned_payer_report = b"\xff"


@pytest.mark.parametrize("change", [other_total, other_signer, other_form, no_report])
def test_read__not_what_the_originator_signed__is_refused(
    change: Callable[[node_api_pb2.SignedPayerReport], None],
) -> None:
    message = changed()
    change(message)

    with pytest.raises(MalformedData):
        read(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"first_id": 0},
        {"originator_id": 200},
        {"first_id": 31},
        {"last_id": 11 + MOST_IDS},
        {"missing": [range(5, 9)]},
        {"missing": [range(12, 14), range(13, 15)]},
        {"missing": [range(12, 12)]},
        {"missing": [range(29, 32)]},
        {"totals": TOTALS[::-1]},
        {"totals": [TOTALS[0], TOTALS[0]]},
        {"totals": [TOTALS[0]._replace(payer=bytes(19))]},
        {"totals": [TOTALS[0]._replace(messages=0)]},
    ],
)
def test_read__form_that_no_report_has__is_refused(fields: dict[str, object]) -> None:
    if fields.get("missing") == [range(12, 12)]:
        message = changed(missing=[range(12, 13)])
        stated = node_api_pb2.PayerReport.FromString(message.unsigned_payer_report)
        stated.missing[0].last_sequence_id = 11
        message.unsigned_payer_report = stated.SerializeToString()
    else:
        message = changed(**fields)

    with pytest.raises(MalformedData, match="payer report"):
        read(message)


@pytest.mark.parametrize("fields", [{"billed_to_nobody": 3}, {"last_id": 29}, {"missing": []}])
def test_check__ids_billed_twice_or_not_at_all__contradict_themselves(
    fields: dict[str, object],
) -> None:
    report = replace(REPORT, **fields)  # type: ignore[arg-type]

    with pytest.raises(MalformedData, match="ids from 11 to"):
        report.check()


@pytest.mark.conforms("T6")
def test_proof__of_each_payer__verifies_against_the_signed_root() -> None:
    for total in TOTALS:
        index, proof = REPORT.proof(total.payer)
        verify_total(REPORT.unsigned, index, total, proof)
        for wrong in (total._replace(bytes=1), total._replace(payer=bytes(20))):
            with pytest.raises(MalformedData):
                verify_total(REPORT.unsigned, index, wrong, proof)
    with pytest.raises(MalformedData, match="a total of payer"):
        REPORT.proof(bytes(20))


def test_unsigned__same_totals__same_bytes_in_each_order_of_making() -> None:
    chance = random.Random(47)
    for _ in range(5):
        shuffled = sorted(chance.sample(TOTALS, len(TOTALS)))
        assert replace(REPORT, totals=shuffled).unsigned == REPORT.unsigned


def test_needed__of_each_network__is_more_than_half() -> None:
    assert [needed_signatures(each) for each in range(1, 8)] == [1, 2, 2, 3, 3, 4, 4]
