"""No decoder of strangers' bytes raises anything but what it says, whatever the bytes are.

`make soak` plays many more. The corpus of odd forms is tests/vectors/decoder_corpus.json.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chainkit.documents.canonical import parse_line, parse_object
from chainkit.documents.fields import parse_json
from chainkit.errors import ConfigurationError, InvalidSignature, MalformedData, Unprovable
from chainkit.ethereum.header import decode_header
from chainkit.ethereum.receipt import decode_receipt
from chainkit.ethereum.transaction import decode_call
from chainkit.ethereum.trie import verify_inclusion
from chainkit.evidence.bundle import parse_bundle
from chainkit.evidence.findings import parse_finding
from chainkit.evidence.inclusion import parse_proof
from chainkit.evidence.message_proof import parse_message_proof
from chainkit.identity.update import read_update
from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.signed import parse_signed
from chainkit.misbehavior.topic_evidence import parse_topic_evidence
from chainkit.protocol.envelope import parse_originator_envelope, stated_place, unread_reason
from chainkit.protocol.mls.key_package import parse_key_package
from chainkit.protocol.mls.message import parse_message_header
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope
from chainkit.protocol.payer_reports import parsed_report, read_report
from chainkit.protocol.proto import (
    envelopes_pb2,
    identity_associations_pb2,
    message_api_pb2,
    node_api_pb2,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes, PayerReports
from chainkit.protocol.publish_rules.client_envelope import parse_client_envelope
from chainkit.protocol.publish_rules.judgement import read_publish
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.protocol.received_envelope import read_received
from chainkit.protocol.reports import parse_inconsistency_report
from chainkit.protocol.strict import check_strict
from chainkit.protocol.topic_heads import entry_of, read_topic_head
from chainkit.service.edge.admin import read_counters, read_port
from chainkit.service.edge.frames import MessageReader, deadline_seconds, framed, metadata_of
from chainkit.service.node_token import RefusedToken, read_token
from chainkit.service.refusals import InvalidRequest, Refusal
from chainkit.service.upload_grant import Grant, read_grant, write_grant
from chainkit.signatures import SigningKey
from chainkit_client.accounts.account_file import (
    parse_account,
    parse_account_line,
    read_sealed_account,
)
from chainkit_client.exchange.control import HistoryRequest, HistoryResponse, parse_control
from chainkit_client.exchange.errors import NetworkError
from chainkit_client.exchange.storage_service import read_download_url
from chainkit_client.groups.plaintext import parse_plaintext
from chainkit_client.groups.welcome import parse_welcome
from chainkit_client.history.rows import parse_history_header, parse_history_line
from chainkit_client.mls.engine import MlsRefused
from chainkit_client.mls.welcome_bounds import check_welcome
from chainkit_client.reading.verified import Keys, read_envelope
from chainkit_gateway.routing import route
from chainkit_node.serving.requests import parsed, selection, topic_selections
from chainkit_node.settings import ServingLimits
from chainkit_node.watching.comparing import Question, read_answer
from support import mls, publishes
from support.decoder_inputs import by_descriptor, damaged
from support.project import ROOT
from support.seeds import IS_SOAK
from support.vectors import from_hex, load

KEY = SigningKey(b"\7" * 32)
LIMITS = ServingLimits()
CLIENT = [
    publishes.group_message(seen={0: 5, 100: 2**64 - 1}),
    publishes.commit(),
    publishes.welcome(),
    publishes.key_package(),
    publishes.identity_update(seen={0: 0}),
]
PAID = [publishes.paid(each) for each in CLIENT]
UPDATES = [
    from_hex(case["update"])
    for inbox in load("identity_updates")["inboxes"]
    for case in inbox["cases"]
]


def vectors(name: str, *fields: str) -> list[bytes]:
    """The values of fields of any case of a file, wherever they stand."""

    def values(content: Any) -> Iterator[bytes]:
        if isinstance(content, dict):
            for key, value in content.items():
                if key in fields and isinstance(value, str):
                    yield from_hex(value)
                else:
                    yield from values(value)
        elif isinstance(content, list):
            for each in content:
                yield from values(each)

    return list(values(load(name)))


@dataclass(frozen=True)
class Decoder:
    """A decoder, whole messages for it, its message's kind, and all that it may raise."""

    decode: Callable[[bytes], Any]
    wholes: Sequence[bytes] = (b"",)
    kinds: Sequence[type[Message]] = field(default=())
    errors: tuple[type[Exception], ...] = (MalformedData,)


ENVELOPES = vectors("envelopes", "originator_envelope") + vectors(
    "originated_envelopes", "originator_envelope"
)
PAYLOADS = [
    *CLIENT,
    *vectors("client_envelopes", "payload"),
    *vectors("envelopes", "client_envelope"),
]
REPORTS = vectors("misbehavior_reports", "misbehavior_report")
UNSIGNED = vectors("misbehavior_reports", "unsigned_misbehavior_report")
KEYS = Keys({100: KEY.public_key}, frozenset({0}))
TOKENS = [b"e30.e30.AA", b"eyJhbGciOiJFUzI1NksifQ.eyJzdWIiOiIxMDAifQ." + b"A" * 86]


def frame(data: bytes) -> Sequence[Any]:
    """A frame of a peer, and each envelope in it."""
    return [entry_of(each) for each in parsed(Envelopes, data).envelopes]


def request(data: bytes) -> Any:
    """Each request of a reader."""
    query = message_api_pb2.QueryEnvelopesRequest
    selection(parsed(query, data).query, LIMITS)


def topics(data: bytes) -> Any:
    return topic_selections(parsed(message_api_pb2.SubscribeTopicsRequest, data), LIMITS)


def payer_reports(data: bytes) -> Any:
    """Each report of an answer, whose answerer may be any node."""
    answer = parsed(PayerReports, data)
    return [read_report(parsed_report(each), {0: KEY.public_key}) for each in answer.reports]


def call(data: bytes) -> Any:
    """The headers and the body of a call behind Envoy."""
    headers = [(b"grpc-timeout", data), (b"x-bin", data)]
    reader = MessageReader(100)
    messages = [each for piece in (data[:3], data[3:]) for each in reader.feed(piece)]
    reader.finish()
    return deadline_seconds(headers), metadata_of(headers), messages


PROTO = envelopes_pb2
RECIPIENT = "age1" + "q" * 58
REFUSED = (MalformedData, PublishRefused)
DECODERS: dict[str, Decoder] = {
    "check_strict": Decoder(
        lambda data: check_strict(data, PROTO.ClientEnvelope), PAYLOADS, [PROTO.ClientEnvelope]
    ),
    "parse_client_envelope": Decoder(
        parse_client_envelope, PAYLOADS, [PROTO.ClientEnvelope], REFUSED
    ),
    "unread_reason": Decoder(unread_reason, PAYLOADS, [PROTO.ClientEnvelope], ()),
    "parse_payer_envelope": Decoder(parse_payer_envelope, PAID, [PROTO.PayerEnvelope], REFUSED),
    "read_publish": Decoder(read_publish, PAID, [PROTO.PayerEnvelope], REFUSED),
    "parse_originator_envelope": Decoder(
        parse_originator_envelope, ENVELOPES, [PROTO.OriginatorEnvelope]
    ),
    "parse_originated": Decoder(parse_originated, ENVELOPES, [PROTO.OriginatorEnvelope]),
    "stated_place": Decoder(stated_place, ENVELOPES, [PROTO.OriginatorEnvelope]),
    "entry_of": Decoder(entry_of, ENVELOPES, [PROTO.OriginatorEnvelope]),
    "read_received": Decoder(
        lambda data: read_received(data, 100, KEY.public_key),
        ENVELOPES,
        [PROTO.OriginatorEnvelope],
    ),
    "read_envelope": Decoder(
        lambda data: read_envelope(data, 100, KEYS), ENVELOPES, [PROTO.OriginatorEnvelope]
    ),
    "frames": Decoder(
        frame,
        [Envelopes(envelopes=ENVELOPES[:2]).SerializeToString()],
        [Envelopes],
        (MalformedData, InvalidRequest),
    ),
    "read_answer": Decoder(
        lambda data: read_answer(data, Question({0: 4}, 0)),
        [Envelopes(envelopes=ENVELOPES[:2]).SerializeToString()],
        [Envelopes],
    ),
    "queries": Decoder(
        request, kinds=[message_api_pb2.QueryEnvelopesRequest], errors=(InvalidRequest,)
    ),
    "subscriptions": Decoder(
        topics, kinds=[message_api_pb2.SubscribeTopicsRequest], errors=(InvalidRequest,)
    ),
    "read_port": Decoder(read_port, [b"callers::127.0.0.1:5050\n"], errors=()),
    "read_counters": Decoder(
        read_counters, [b"http.callers.downstream_rq_timeout: 7\n"], errors=()
    ),
    "call": Decoder(call, [framed(b"a") + framed(b""), b"10S"], errors=(Refusal,)),
    "route": Decoder(
        lambda data: route(data, "ann"),
        PAYLOADS,
        [PROTO.ClientEnvelope],
        (*REFUSED, Refusal),
    ),
    "read_update": Decoder(read_update, UPDATES, [identity_associations_pb2.IdentityUpdate]),
    "parse_unsigned": Decoder(
        parse_unsigned, UNSIGNED, [message_api_pb2.UnsignedMisbehaviorReport]
    ),
    "parse_signed": Decoder(parse_signed, REPORTS, [message_api_pb2.MisbehaviorReport]),
    "parse_inconsistency_report": Decoder(
        parse_inconsistency_report, REPORTS, [message_api_pb2.MisbehaviorReport]
    ),
    "parse_topic_evidence": Decoder(parse_topic_evidence, kinds=[node_api_pb2.TopicHeadQuery]),
    "read_topic_head": Decoder(
        lambda data: read_topic_head(data, KEY.public_key), kinds=[node_api_pb2.SignedTopicHead]
    ),
    "parse_message_header": Decoder(
        parse_message_header,
        [mls.private_message(b"g" * 16, authenticated_data=b"")],
    ),
    "parse_key_package": Decoder(parse_key_package, [mls.KeyPackageFields().written()]),
    "check_welcome": Decoder(
        lambda data: check_welcome(data, b"package"), errors=(MlsRefused, MalformedData)
    ),
    "parse_plaintext": Decoder(parse_plaintext, [b"\1" + bytes(16) + b"\1" + bytes(40)]),
    "parse_welcome": Decoder(parse_welcome, [b"\1\x20" + bytes(40)]),
    "read_token": Decoder(
        lambda data: read_token(data.decode("latin-1")), TOKENS, errors=(RefusedToken,)
    ),
    "decode_header": Decoder(decode_header, [bytes.fromhex("c0")]),
    "decode_receipt": Decoder(
        decode_receipt,
        [bytes.fromhex("02c0"), bytes.fromhex("c0")],
        errors=(MalformedData, Unprovable),
    ),
    "decode_call": Decoder(
        decode_call,
        [bytes.fromhex("02c0"), bytes.fromhex("c0")],
        errors=(MalformedData, Unprovable),
    ),
    "verify_inclusion": Decoder(
        lambda data: verify_inclusion(data[:32], data[32:33] != b"", [data[33:], data]), [bytes(70)]
    ),
    "parse_json": Decoder(
        lambda data: parse_json(data, "file"),
        [b'{"a": [1, "x"]}'],
        errors=(MalformedData, ConfigurationError),
    ),
    "parse_object": Decoder(lambda data: parse_object(data, "file"), [b'{\n  "a": 1\n}\n']),
    "parse_line": Decoder(lambda data: parse_line(data, "file"), [b'{"a":1}\n']),
    "parse_bundle": Decoder(parse_bundle, [b'{\n  "format": 3\n}\n']),
    "parse_finding": Decoder(lambda data: parse_finding(data, "file"), [b'{"code":"GAP"}\n']),
    "parse_proof": Decoder(lambda data: parse_proof(data, "file"), [b'{"block":1}\n']),
    "parse_message_proof": Decoder(parse_message_proof, [b'{\n  "format": 1\n}\n']),
    "parse_history_header": Decoder(parse_history_header, [b'{"format":"x","version":1}']),
    "parse_history_line": Decoder(
        lambda data: parse_history_line(data, bytes(32)),
        [b'{"kind":"end","signature":"00"}', b'{"kind":"group","read":{},"skipped":{"0":[1]}}'],
    ),
    "parse_control": Decoder(
        parse_control,
        [
            HistoryRequest(bytes(16), bytes(32), "0427", "https://a/", RECIPIENT, 9).encoded(),
            HistoryResponse(bytes(16), "https://a/", bytes(32), 9, RECIPIENT, 9).encoded(),
        ],
    ),
    "parse_account_line": Decoder(
        parse_account_line, [b'{"format":"chainkit backup account","version":1}']
    ),
    "read_sealed_account": Decoder(
        lambda data: read_sealed_account(io.BytesIO(data)), [b'{"format":"x","version":1}\n']
    ),
    "parse_account": Decoder(parse_account, [b'{"inbox":"0x00","key_packages":[]}']),
    "read_download_url": Decoder(
        read_download_url, [b'{"downloadUrl":"https://a/b"}'], errors=(NetworkError,)
    ),
    "read_grant": Decoder(
        lambda data: read_grant(bytes(32), data.decode("latin-1"), 0.0),
        [write_grant(bytes(32), Grant(bytes(16), 9)).encode()],
        errors=(MalformedData, InvalidSignature),
    ),
    "read_report": Decoder(
        payer_reports,
        kinds=[node_api_pb2.QueryPayerReportsResponse],
        errors=(MalformedData, Refusal),
    ),
}
EXAMPLES = 3000 if IS_SOAK else 10


def inputs(decoder: Decoder) -> st.SearchStrategy[bytes]:
    ways = [damaged(decoder.wholes), st.binary(max_size=200)]
    ways += [by_descriptor(kind, decoder.wholes) for kind in decoder.kinds]
    return st.one_of(*ways)


@pytest.mark.parametrize("name", DECODERS)
def test_decoder__any_bytes__gives_a_value_or_its_own_error(name: str) -> None:
    decoder = DECODERS[name]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        # To make a failing message small takes minutes; it is printed as it is.
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(inputs(decoder))
    def fuzz(data: bytes) -> None:
        outcome(decoder, data)

    fuzz()


def outcome(decoder: Decoder, data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except decoder.errors as error:
        # Errors go to the stranger, to logs and to pages.
        return str(error).encode()


@pytest.mark.parametrize("case", load("decoder_corpus")["cases"], ids=lambda case: case["name"])
def test_decoder__bytes_that_were_found__gives_a_value_or_its_own_error(
    case: dict[str, str],
) -> None:
    outcome(DECODERS[case["decoder"]], from_hex(case["bytes"]))


ROOMS = ("src/chainkit", "node/chainkit_node", "gateway/chainkit_gateway", "client/chainkit_client")
WRITTEN = re.compile(r"^def ((?:parse|decode|read)_\w+)\(\s*\w+: bytes", re.MULTILINE)
OF_OUR_OWN = {
    **dict.fromkeys(
        ("decode_arguments", "decode_welcomes", "decode_fields"), "own database or child"
    ),
    **dict.fromkeys(("read_number",), "own child process"),
    **dict.fromkeys(
        ("decode_transaction", "parse_exec_calldata", "decode_batch"), "council's files"
    ),
    "read_for_originator": "read_publish, with the refusal turned into an answer",
    "read_received_publish": "read_received",
    "read_publish_answer": "read_envelope",
    "parse_proposal": "parse_json, and the owners' own files",
    **dict.fromkeys(("read_devices", "read_inbox"), "read_update"),
}
"""Decoders of bytes that no stranger chooses, or that others decode first."""


def written_decoders() -> Iterator[str]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            yield from WRITTEN.findall(path.read_text())


def test_decoders__each_function_that_decodes_bytes__has_a_fuzzer() -> None:
    found = set(written_decoders())

    assert len(found) > 25
    assert found - DECODERS.keys() - OF_OUR_OWN.keys() == set()
    assert OF_OUR_OWN.keys() - found == set()
