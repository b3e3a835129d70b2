// Protobuf wire format by protobufjs, from descriptors written by hand after XIP-49 section 3 and, for
// fields that it does not have, after XMTP's public schema. They are kept apart from
// src/chainkit/protocol/proto/*.proto on purpose: a wrong number there must show.
import { getBytes, hexlify } from "ethers";
import protobuf from "protobufjs";

const field = (id, type, rule) => ({ id, type, ...(rule && { rule }) });
const message = (fields) => ({ fields });

const root = protobuf.Root.fromJSON({
  nested: {
    EcdsaSignature: message({ bytes: field(1, "bytes") }),
    AnySignature: message({ erc_191: field(1, "EcdsaSignature") }),
    MemberIdentifier: message({
      ethereum_address: field(1, "string"),
      installation_public_key: field(2, "bytes"),
    }),
    CreateInbox: message({
      initial_identifier: field(1, "string"),
      nonce: field(2, "uint64"),
      initial_identifier_signature: field(3, "AnySignature"),
      initial_identifier_kind: field(4, "uint32"),
    }),
    AddAssociation: message({
      new_member_identifier: field(1, "MemberIdentifier"),
      existing_member_signature: field(2, "AnySignature"),
    }),
    IdentityAction: message({
      create_inbox: field(1, "CreateInbox"),
      add: field(2, "AddAssociation"),
    }),
    IdentityUpdate: message({
      actions: field(1, "IdentityAction", "repeated"),
      client_timestamp_ns: field(2, "uint64"),
      inbox_id: field(3, "string"),
    }),
    GroupMessageV1: message({
      data: field(1, "bytes"),
      sender_hmac: field(2, "bytes"),
      should_push: field(3, "bool"),
    }),
    GroupMessageInput: message({ v1: field(1, "GroupMessageV1") }),
    WelcomeMessageV1: message({
      installation_key: field(1, "bytes"),
      data: field(2, "bytes"),
      hpke_public_key: field(3, "bytes"),
    }),
    WelcomeMessageInput: message({ v1: field(1, "WelcomeMessageV1") }),
    KeyPackageUpload: message({ key_package_tls_serialized: field(1, "bytes") }),
    UploadKeyPackageRequest: message({ key_package: field(1, "KeyPackageUpload") }),
    Cursor: message({
      node_id_to_sequence_id: { keyType: "uint32", type: "uint64", id: 1 },
    }),
    AuthenticatedData: message({
      target_originator: field(1, "uint32"),
      target_topic: field(2, "bytes"),
      last_seen: field(3, "Cursor"),
    }),
    ClientEnvelope: message({
      aad: field(1, "AuthenticatedData"),
      group_message: field(2, "GroupMessageInput"),
      welcome_message: field(3, "WelcomeMessageInput"),
      upload_key_package: field(4, "UploadKeyPackageRequest"),
      identity_update: field(5, "IdentityUpdate"),
    }),
    PayerEnvelope: message({
      unsigned_client_envelope: field(1, "bytes"),
      payer_signature: field(2, "EcdsaSignature"),
      target_originator: field(3, "uint32"),
      message_retention_days: field(4, "uint32"),
      retention_signature: field(1000, "bytes"),
    }),
    UnsignedOriginatorEnvelope: message({
      originator_node_id: field(1, "uint32"),
      originator_sequence_id: field(2, "uint64"),
      originator_ns: field(3, "int64"),
      payer_envelope: field(4, "PayerEnvelope"),
      expiry_unixtime: field(7, "uint64"),
    }),
    BlockchainProof: message({
      transaction_hash: field(1, "bytes"),
      node_signature: field(2, "EcdsaSignature"),
    }),
    OriginatorEnvelope: message({
      unsigned_originator_envelope: field(1, "bytes"),
      originator_signature: field(2, "EcdsaSignature"),
      blockchain_proof: field(3, "BlockchainProof"),
    }),
    SafetyFailure: message({ envelopes: field(1, "OriginatorEnvelope", "repeated") }),
    UnsignedMisbehaviorReport: message({
      reporter_time_ns: field(1, "uint64"),
      misbehaving_node_id: field(2, "uint32"),
      type: field(3, "uint32"),
      safety: field(5, "SafetyFailure"),
      submitted_by_node: field(6, "bool"),
    }),
    MisbehaviorReport: message({
      server_time_ns: field(1, "uint64"),
      unsigned_misbehavior_report: field(2, "bytes"),
      signature: field(3, "EcdsaSignature"),
    }),
  },
});

// protobufjs takes bytes as arrays; the vectors speak hexadecimal. An unknown name would be dropped
// silently: it is an error here.
function withBytes(type, value) {
  const convert = (field, item) => {
    if (field.type === "bytes") return getBytes(item);
    return field.resolve().resolvedType ? withBytes(field.resolvedType, item) : item;
  };
  const entries = Object.entries(value).map(([name, item]) => {
    const field = type.fields[name];
    if (!field) throw new Error(`${type.name} has no field ${name}`);
    return [name, field.repeated ? item.map((each) => convert(field, each)) : convert(field, item)];
  });
  return Object.fromEntries(entries);
}

// Every field that is given is written, so a caller leaves out what proto3 does not write: zeros
// and empty bytes outside a oneof.
export function encode(typeName, value) {
  const type = root.lookupType(typeName);
  return hexlify(type.encode(type.fromObject(withBytes(type, value))).finish());
}
