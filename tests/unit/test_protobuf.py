"""The generated messages against XIP-49's field numbers and vectors of another implementation."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message

from chainkit.proto import envelopes_pb2, identity_associations_pb2, message_api_pb2

ROOT = Path(__file__).resolve().parents[2]

XIP_49_FIELDS = {
    identity_associations_pb2.RecoverableEcdsaSignature: "bytes=1",
    envelopes_pb2.Cursor: "node_id_to_sequence_id=1",
    envelopes_pb2.AuthenticatedData: "target_originator=1 target_topic=2 last_seen=3",
    envelopes_pb2.ClientEnvelope: (
        "aad=1 group_message=2 welcome_message=3 upload_key_package=4 identity_update=5"
    ),
    envelopes_pb2.PayerEnvelope: "unsigned_client_envelope=1 payer_signature=2",
    envelopes_pb2.UnsignedOriginatorEnvelope: (
        "originator_node_id=1 originator_sequence_id=2 originator_ns=3 payer_envelope=4"
    ),
    envelopes_pb2.BlockchainProof: "transaction_hash=1 node_signature=2",
    envelopes_pb2.OriginatorEnvelope: (
        "unsigned_originator_envelope=1 originator_signature=2 blockchain_proof=3"
    ),
    message_api_pb2.EnvelopesQuery: "topics=1 originator_node_ids=2 last_seen=3",
    message_api_pb2.SubscribeEnvelopesRequest: "query=1",
    message_api_pb2.SubscribeEnvelopesResponse: "envelopes=1",
    message_api_pb2.QueryEnvelopesRequest: "query=1 limit=2",
    message_api_pb2.QueryEnvelopesResponse: "envelopes=1",
    message_api_pb2.PublishPayerEnvelopesRequest: "payer_envelopes=1",
    message_api_pb2.PublishPayerEnvelopesResponse: "originator_envelopes=1",
    message_api_pb2.GetInboxIdsRequest: "requests=1",
    message_api_pb2.GetInboxIdsRequest.Request: "address=1",
    message_api_pb2.GetInboxIdsResponse: "responses=1",
    message_api_pb2.GetInboxIdsResponse.Response: "address=1 inbox_id=2",
    message_api_pb2.LivenessFailure: "response_time_ns=1 subscribe=2 query=3 publish=4",
    message_api_pb2.SafetyFailure: "envelopes=1",
    message_api_pb2.UnsignedMisbehaviorReport: (
        "reporter_time_ns=1 misbehaving_node_id=2 type=3 liveness=4 safety=5 submitted_by_node=6"
    ),
    message_api_pb2.MisbehaviorReport: (
        "server_time_ns=1 unsigned_misbehavior_report=2 signature=3"
    ),
    message_api_pb2.SubmitMisbehaviorReportRequest: "report=1",
    message_api_pb2.SubmitMisbehaviorReportResponse: "",
    message_api_pb2.QueryMisbehaviorReportsRequest: "after_ns=1",
    message_api_pb2.QueryMisbehaviorReportsResponse: "reports=1",
}

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
    shutil.copytree(ROOT / "src/chainkit/proto", tmp_path / "chainkit/proto")
    return tmp_path


@pytest.mark.parametrize("message_type", XIP_49_FIELDS, ids=lambda kind: kind.DESCRIPTOR.full_name)
def test_describe_message__any_of_section_3__has_the_xips_numbers(
    message_type: type[Message],
) -> None:
    fields = message_type.DESCRIPTOR.fields
    found = " ".join(f"{field.name}={field.number}" for field in fields)

    assert found == XIP_49_FIELDS[message_type]


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
        originator_ns=int(case["block_timestamp"]) * 10**9,
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
    else:
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
    folder = copied_root / "chainkit/proto"
    changed = folder / "envelopes_pb2.py"
    changed.write_text(changed.read_text() + "# edited by hand\n")
    (folder / "mls_api_pb2.pyi").unlink()
    (folder / "removed_pb2.py").write_text("")

    exit_code = load_generator().main(["--check"], copied_root)

    named = [line.split(":")[0] for line in capfd.readouterr().out.splitlines()]
    assert exit_code == 1
    assert named == [
        "chainkit/proto/envelopes_pb2.py",
        "chainkit/proto/mls_api_pb2.pyi",
        "chainkit/proto/removed_pb2.py",
    ]
    assert changed.read_text().endswith("# edited by hand\n")


def test_generate__new_field__writes_code_that_is_current_again(copied_root: Path) -> None:
    generator = load_generator()
    source = copied_root / "chainkit/proto/envelopes.proto"
    source.write_text(source.read_text().replace("Cursor last_seen = 3;", "Cursor seen = 3;"))

    assert generator.outdated_files(copied_root) == [
        "chainkit/proto/envelopes_pb2.py",
        "chainkit/proto/envelopes_pb2.pyi",
    ]
    assert generator.main([], copied_root) == 0
    assert generator.outdated_files(copied_root) == []
