"""The generated messages against XIP-49's and today's field numbers, and vectors of another
implementation."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from chainkit.protocol.envelope import QuarantineReason
from chainkit.protocol.proto import (
    envelopes_pb2,
    identity_associations_pb2,
    message_api_pb2,
    node_api_pb2,
    payer_api_pb2,
)
from support.chain_times import chain_ns
from support.project import ROOT

# Fields above XIP-49's numbers are those of XMTP's public schema, at the numbers it gives them.
XIP_49_FIELDS = {
    identity_associations_pb2.RecoverableEcdsaSignature: "bytes bytes=1",
    envelopes_pb2.Cursor: "repeated NodeIdToSequenceIdEntry node_id_to_sequence_id=1",
    envelopes_pb2.Cursor.NodeIdToSequenceIdEntry: "uint32 key=1, uint64 value=2",
    envelopes_pb2.AuthenticatedData: (
        "uint32 target_originator=1, bytes target_topic=2, Cursor last_seen=3"
    ),
    envelopes_pb2.ClientEnvelope: (
        "AuthenticatedData aad=1, GroupMessageInput group_message=2, "
        "WelcomeMessageInput welcome_message=3, UploadKeyPackageRequest upload_key_package=4, "
        "IdentityUpdate identity_update=5"
    ),
    envelopes_pb2.PayerEnvelope: (
        "bytes unsigned_client_envelope=1, RecoverableEcdsaSignature payer_signature=2, "
        "uint32 target_originator=3, uint32 message_retention_days=4, "
        "bytes retention_signature=1000"
    ),
    # The payer envelope as bytes is the one type that is not the XIP's: the same on the wire.
    envelopes_pb2.UnsignedOriginatorEnvelope: (
        "uint32 originator_node_id=1, uint64 originator_sequence_id=2, int64 originator_ns=3, "
        "bytes payer_envelope=4, uint64 base_fee_picodollars=5, "
        "uint64 congestion_fee_picodollars=6, uint64 expiry_unixtime=7"
    ),
    envelopes_pb2.BlockchainProof: (
        "bytes transaction_hash=1, RecoverableEcdsaSignature node_signature=2"
    ),
    envelopes_pb2.OriginatorEnvelope: (
        "bytes unsigned_originator_envelope=1, RecoverableEcdsaSignature originator_signature=2, "
        "BlockchainProof blockchain_proof=3"
    ),
    message_api_pb2.EnvelopesQuery: (
        "repeated bytes topics=1, repeated uint32 originator_node_ids=2, Cursor last_seen=3"
    ),
    message_api_pb2.SubscribeEnvelopesRequest: "EnvelopesQuery query=1",
    message_api_pb2.SubscribeEnvelopesResponse: "repeated OriginatorEnvelope envelopes=1",
    message_api_pb2.QueryEnvelopesRequest: "EnvelopesQuery query=1, uint32 limit=2",
    message_api_pb2.QueryEnvelopesResponse: "repeated OriginatorEnvelope envelopes=1",
    message_api_pb2.PublishPayerEnvelopesRequest: "repeated PayerEnvelope payer_envelopes=1",
    message_api_pb2.PublishPayerEnvelopesResponse: (
        "repeated OriginatorEnvelope originator_envelopes=1"
    ),
    message_api_pb2.GetInboxIdsRequest: "repeated Request requests=1",
    message_api_pb2.GetInboxIdsRequest.Request: (
        "string identifier=1, IdentifierKind identifier_kind=2"
    ),
    message_api_pb2.GetInboxIdsResponse: "repeated Response responses=1",
    message_api_pb2.GetInboxIdsResponse.Response: (
        "string identifier=1, string inbox_id=2, IdentifierKind identifier_kind=3"
    ),
    message_api_pb2.LivenessFailure: (
        "uint32 response_time_ns=1, SubscribeEnvelopesRequest subscribe=2, "
        "QueryEnvelopesRequest query=3, PublishPayerEnvelopesRequest publish=4"
    ),
    # topic_evidence is ours: others skip it.
    message_api_pb2.SafetyFailure: (
        "repeated OriginatorEnvelope envelopes=1, bytes topic_evidence=1000"
    ),
    message_api_pb2.UnsignedMisbehaviorReport: (
        "uint64 reporter_time_ns=1, uint32 misbehaving_node_id=2, Misbehavior type=3, "
        "LivenessFailure liveness=4, SafetyFailure safety=5, bool submitted_by_node=6"
    ),
    message_api_pb2.MisbehaviorReport: (
        "uint64 server_time_ns=1, bytes unsigned_misbehavior_report=2, "
        "RecoverableEcdsaSignature signature=3"
    ),
    message_api_pb2.SubmitMisbehaviorReportRequest: "UnsignedMisbehaviorReport report=1",
    message_api_pb2.SubmitMisbehaviorReportResponse: "",
    message_api_pb2.QueryMisbehaviorReportsRequest: "uint64 after_ns=1",
    message_api_pb2.QueryMisbehaviorReportsResponse: "repeated MisbehaviorReport reports=1",
}

PUBLIC_SCHEMA_FIELDS = {
    message_api_pb2.SubscribeTopicsRequest: "repeated TopicFilter filters=1",
    message_api_pb2.SubscribeTopicsRequest.TopicFilter: "bytes topic=1, Cursor last_seen=2",
    message_api_pb2.SubscribeTopicsResponse: "Envelopes envelopes=1, StatusUpdate status_update=2",
    message_api_pb2.SubscribeTopicsResponse.Envelopes: "repeated OriginatorEnvelope envelopes=1",
    message_api_pb2.SubscribeTopicsResponse.StatusUpdate: "SubscriptionStatus status=1",
    message_api_pb2.GetNewestEnvelopeRequest: "repeated bytes topics=1",
    message_api_pb2.GetNewestEnvelopeResponse: "repeated Response results=1",
    message_api_pb2.GetNewestEnvelopeResponse.Response: "OriginatorEnvelope originator_envelope=1",
    # The client envelopes as bytes are not the public schema's: the same on the wire.
    payer_api_pb2.PublishClientEnvelopesRequest: (
        "repeated bytes envelopes=1, uint32 retention_days=1000"
    ),
    payer_api_pb2.PublishClientEnvelopesResponse: (
        "repeated OriginatorEnvelope originator_envelopes=1"
    ),
    payer_api_pb2.GetNodesRequest: "",
    payer_api_pb2.GetNodesResponse: "repeated NodesEntry nodes=1",
    payer_api_pb2.GetNodesResponse.NodesEntry: "uint32 key=1, string value=2",
}
OUR_FIELDS = {
    node_api_pb2.Range: "uint32 level=1, uint64 number=2",
    node_api_pb2.CompareRangesRequest: (
        "uint32 originator_node_id=1, uint64 through_sequence_id=2, repeated Range ranges=3"
    ),
    node_api_pb2.RangeContent: "bytes digests=1, fixed64 expired=2",
    node_api_pb2.CompareRangesResponse: (
        "uint64 highest_sequence_id=1, repeated RangeContent contents=2, uint64 now_ns=3"
    ),
}
EXPECTED_FIELDS = XIP_49_FIELDS | PUBLIC_SCHEMA_FIELDS | OUR_FIELDS

SUBSCRIPTION_STATUSES = "UNSPECIFIED STARTED CATCHUP_COMPLETE WAITING"

SERVICES = {
    "xmtp.xmtpv4.message_api.ReplicationApi": (
        "SubscribeEnvelopes SubscribeTopics QueryEnvelopes PublishPayerEnvelopes GetInboxIds"
        " GetNewestEnvelope"
    ),
    "xmtp.xmtpv4.message_api.QueryApi": (
        "QueryEnvelopes SubscribeTopics GetInboxIds GetNewestEnvelope"
    ),
    "xmtp.xmtpv4.message_api.PublishApi": "PublishPayerEnvelopes",
    "xmtp.xmtpv4.message_api.MisbehaviorApi": "SubmitMisbehaviorReport QueryMisbehaviorReports",
    "chainkit.node_api.v1.LogApi": "CompareRanges",
    "chainkit.node_api.v1.PayerReportApi": "QueryPayerReports",
    "xmtp.xmtpv4.payer_api.PayerApi": "PublishClientEnvelopes GetNodes",
}

XIP_49_MISBEHAVIORS = (
    "UNSPECIFIED UNRESPONSIVE_NODE SLOW_NODE FAILED_REQUEST OUT_OF_ORDER DUPLICATE_SEQUENCE_ID"
    " CAUSAL_ORDERING INVALID_PAYLOAD BLOCKCHAIN_INCONSISTENCY"
)

# Field 99, which no version of PayerEnvelope knows, then the known fields in falling order.
UNUSUAL_PAYER_ENVELOPE = bytes.fromhex("9806ac0212030a01ff0a03010203")


def vector_cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((ROOT / "tests/vectors" / name).read_text())["cases"]
    return cases


def from_hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def case_name(case: object) -> str | None:
    return case["name"] if isinstance(case, dict) else None


def load_generator() -> Any:
    path = ROOT / "tools/generate_protobuf.py"
    specification = importlib.util.spec_from_file_location("generate_protobuf", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def copied_root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src/chainkit/protocol/proto", tmp_path / "chainkit/protocol/proto")
    return tmp_path


SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def described(field: FieldDescriptor) -> str:
    kind = field.message_type or field.enum_type
    name = kind.name if kind else SCALARS[field.type]
    return f"{'repeated ' if field.is_repeated else ''}{name} {field.name}={field.number}"


@pytest.mark.parametrize(
    "message_type", EXPECTED_FIELDS, ids=lambda kind: kind.DESCRIPTOR.full_name
)
def test_describe_message__any__has_the_specified_types_and_numbers(
    message_type: type[Message],
) -> None:
    found = ", ".join(described(field) for field in message_type.DESCRIPTOR.fields)

    assert found == EXPECTED_FIELDS[message_type]


def test_describe_misbehavior__all__have_the_xips_numbers() -> None:
    expected = [f"MISBEHAVIOR_{name}" for name in XIP_49_MISBEHAVIORS.split()]

    assert dict(message_api_pb2.Misbehavior.items()) == {
        name: number for number, name in enumerate(expected)
    }


def test_describe_subscription_status__all__have_the_public_schemas_numbers() -> None:
    expected = [f"SUBSCRIPTION_STATUS_{name}" for name in SUBSCRIPTION_STATUSES.split()]

    assert dict(message_api_pb2.SubscribeTopicsResponse.SubscriptionStatus.items()) == {
        name: number for number, name in enumerate(expected)
    }


@pytest.mark.parametrize("name", SERVICES)
def test_describe_service__any__offers_its_methods(name: str) -> None:
    service = descriptor_pool.Default().FindServiceByName(name)

    assert [method.name for method in service.methods] == SERVICES[name].split()
    for method in service.methods:
        assert method.input_type.name == f"{method.name}Request"
        assert method.output_type.name == f"{method.name}Response"
        assert method.server_streaming == method.name.startswith("Subscribe")
        assert not method.client_streaming


@pytest.mark.parametrize("case", vector_cases("envelopes.json"), ids=case_name)
def test_parse_and_serialize__node_0_envelope__gives_the_same_bytes(case: dict[str, Any]) -> None:
    for message_type, name in (
        (envelopes_pb2.PayerEnvelope, "payer_envelope"),
        (envelopes_pb2.UnsignedOriginatorEnvelope, "unsigned_originator_envelope"),
        (envelopes_pb2.OriginatorEnvelope, "originator_envelope"),
    ):
        received = from_hex(case[name])

        assert message_type.FromString(received).SerializeToString() == received


@pytest.mark.parametrize("case", vector_cases("envelopes.json"), ids=case_name)
def test_build__fields_of_the_event__gives_the_vectors_bytes(case: dict[str, Any]) -> None:
    payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=from_hex(case["client_envelope"]))
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(
        originator_node_id=0,
        originator_sequence_id=int(case["sequence_id"]),
        originator_ns=chain_ns(int(case["block_timestamp"]), int(case["sequence_id"])),
        payer_envelope=payer.SerializeToString(),
    )
    signature = identity_associations_pb2.RecoverableEcdsaSignature(
        bytes=from_hex(case["signature"])
    )
    envelope = envelopes_pb2.OriginatorEnvelope(
        unsigned_originator_envelope=unsigned.SerializeToString(),
        blockchain_proof=envelopes_pb2.BlockchainProof(
            transaction_hash=from_hex(case["transaction_hash"]), node_signature=signature
        ),
    )

    assert envelope.SerializeToString() == from_hex(case["originator_envelope"])


@pytest.mark.parametrize("case", vector_cases("envelopes.json"), ids=case_name)
def test_parse__client_envelope_of_a_vector__finds_topic_and_payload(case: dict[str, Any]) -> None:
    envelope = envelopes_pb2.ClientEnvelope.FromString(from_hex(case["client_envelope"]))
    kind, payload = {
        "MessageSent": (b"\0", "group_message"),
        "IdentityUpdateCreated": (b"\2", "identity_update"),
    }[case["contract_event"]]

    assert envelope.aad.target_topic == kind + from_hex(case["identifier"])
    assert envelope.WhichOneof("payload") == payload
    if payload == "identity_update":
        create, add = envelope.identity_update.actions
        assert envelope.identity_update.inbox_id == case["identifier"].removeprefix("0x")
        assert len(create.create_inbox.initial_identifier_signature.erc_191.bytes) == 65
        assert len(add.add.new_member_identifier.installation_public_key) == 32


@pytest.mark.parametrize("case", vector_cases("client_envelopes.json"), ids=case_name)
def test_parse__posted_payload__fails_only_where_the_vector_says_so(case: dict[str, Any]) -> None:
    payload = from_hex(case["payload"])

    if case["reason"] == "not a ClientEnvelope":
        with pytest.raises(DecodeError):
            envelopes_pb2.ClientEnvelope.FromString(payload)
    elif not (case["reason"] or "").startswith(QuarantineReason.NOT_STRICT):
        envelope = envelopes_pb2.ClientEnvelope.FromString(payload)
        assert envelope.HasField("aad") == (case["reason"] != "no aad")


@pytest.mark.parametrize("case", vector_cases("misbehavior_reports.json"), ids=case_name)
def test_parse_and_serialize__misbehavior_report__gives_the_same_bytes(
    case: dict[str, Any],
) -> None:
    received = from_hex(case["misbehavior_report"])
    report = message_api_pb2.MisbehaviorReport.FromString(received)
    unsigned = message_api_pb2.UnsignedMisbehaviorReport.FromString(
        report.unsigned_misbehavior_report
    )
    envelopes = {each["name"]: each for each in vector_cases("envelopes.json")}

    assert report.SerializeToString() == received
    assert unsigned.SerializeToString() == from_hex(case["unsigned_misbehavior_report"])
    assert unsigned.type == message_api_pb2.MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY
    assert unsigned.submitted_by_node == case["submitted_by_node"]
    assert [each.SerializeToString() for each in unsigned.safety.envelopes] == [
        from_hex(envelopes[name]["originator_envelope"]) for name in case["envelopes"]
    ]


def test_parse_and_serialize__payer_envelope_in_unusual_bytes__is_kept_as_it_came() -> None:
    length = len(UNUSUAL_PAYER_ENVELOPE)
    received = b"\x10\x07" + bytes([0x22, length]) + UNUSUAL_PAYER_ENVELOPE

    envelope = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(received)
    payer = envelopes_pb2.PayerEnvelope.FromString(envelope.payer_envelope)

    assert envelope.SerializeToString() == received
    assert envelope.payer_envelope == UNUSUAL_PAYER_ENVELOPE
    assert payer.unsigned_client_envelope == b"\1\2\3"
    assert payer.SerializeToString() != UNUSUAL_PAYER_ENVELOPE


def test_check__committed_code__is_current() -> None:
    generator = load_generator()

    assert generator.outdated_files(generator.IMPORT_ROOT) == []


def test_check__changed_missing_and_orphaned_files__names_each_and_changes_nothing(
    copied_root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = copied_root / "chainkit/protocol/proto"
    changed = folder / "envelopes_pb2.py"
    changed.write_text(changed.read_text() + "# edited by hand\n")
    (folder / "mls_api_pb2.pyi").unlink()
    (folder / "removed_pb2.py").write_text("")

    exit_code = load_generator().main(["--check"], copied_root)

    named = [line.split(":")[0] for line in capfd.readouterr().out.splitlines()]
    assert exit_code == 1
    assert named == [
        "chainkit/protocol/proto/envelopes_pb2.py",
        "chainkit/protocol/proto/mls_api_pb2.pyi",
        "chainkit/protocol/proto/removed_pb2.py",
    ]
    assert changed.read_text().endswith("# edited by hand\n")


def test_generate__new_field__writes_code_that_is_current_again(copied_root: Path) -> None:
    generator = load_generator()
    source = copied_root / "chainkit/protocol/proto/envelopes.proto"
    source.write_text(source.read_text().replace("Cursor last_seen = 3;", "Cursor seen = 3;"))

    assert generator.outdated_files(copied_root) == [
        "chainkit/protocol/proto/envelopes_pb2.py",
        "chainkit/protocol/proto/envelopes_pb2.pyi",
    ]
    assert generator.main([], copied_root) == 0
    assert generator.outdated_files(copied_root) == []


def test_start__another_protobuf_runtime__is_refused_in_a_sentence() -> None:
    program = Path(sys.executable).with_name("chainkit")
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}

    done = subprocess.run(
        [program, "council", "verify", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("error: protobuf runtime: expected upb")
