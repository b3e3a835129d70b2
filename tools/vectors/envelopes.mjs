// Node-0 envelopes from an event to the signed OriginatorEnvelope (XIP-49 section 3.2.1).
import { concat } from "ethers";

import {
  KIND_OF_EVENT,
  authenticatedData,
  groupMessage,
  identityUpdate,
} from "./client_envelopes.mjs";
import { COMMENT, MAX_UINT64, signLabelled, testBytes, testKey } from "./primitives.mjs";
import { encode } from "./wire.mjs";

const NANOSECONDS_PER_SECOND = 1_000_000_000n;

// An OriginatorEnvelope as protobufjs takes it: the report vectors hold the same message.
function originatorEnvelope({ unsigned_originator_envelope, transaction_hash, signature }) {
  return {
    unsigned_originator_envelope,
    blockchain_proof: { transaction_hash, node_signature: { bytes: signature } },
  };
}

// docs/adr/0045: the second after the block's, and a microsecond for each sequence id.
function chainTime(timestamp, sequenceId) {
  const microseconds = BigInt(sequenceId) % 1_000_000n;
  return ((BigInt(timestamp) + 1n) * NANOSECONDS_PER_SECOND + microseconds * 1_000n).toString();
}

function envelopeCase({ name, event, identifier, clientEnvelope, sequenceId, timestamp, key }) {
  const payer_envelope = encode("PayerEnvelope", { unsigned_client_envelope: clientEnvelope });
  const unsigned_originator_envelope = encode("UnsignedOriginatorEnvelope", {
    originator_sequence_id: sequenceId,
    originator_ns: chainTime(timestamp, sequenceId),
    payer_envelope: { unsigned_client_envelope: clientEnvelope },
  });
  const transaction_hash = testBytes(`transaction ${name}`, 32);
  const signed = signLabelled(key, "blockchain|", unsigned_originator_envelope, transaction_hash);
  return {
    name,
    contract_event: event,
    identifier,
    client_envelope: clientEnvelope,
    sequence_id: sequenceId,
    block_timestamp: timestamp,
    transaction_hash,
    private_key: key.privateKey,
    payer_envelope,
    unsigned_originator_envelope,
    digest: signed.digest,
    signature: signed.signature,
    public_key: key.publicKey,
    originator_envelope: encode(
      "OriginatorEnvelope",
      originatorEnvelope({ unsigned_originator_envelope, transaction_hash, ...signed }),
    ),
  };
}

function clientEnvelope(event, identifier, sequenceIds, payload) {
  const aad = authenticatedData(KIND_OF_EVENT[event], identifier, sequenceIds);
  return encode("ClientEnvelope", { aad, ...payload });
}

function groupMessageCase(name, key, sequenceId, timestamp, length, sequenceIds) {
  const identifier = testBytes(`group of ${name}`, 32);
  const payload = { group_message: groupMessage(name, length) };
  const event = "MessageSent";
  const bytes = clientEnvelope(event, identifier, sequenceIds, payload);
  return envelopeCase({
    name,
    event,
    identifier,
    clientEnvelope: bytes,
    sequenceId,
    timestamp,
    key,
  });
}

function identityUpdateCase(name, key, sequenceId, timestamp, sequenceIds) {
  const identifier = testBytes(`inbox of ${name}`, 32);
  const payload = { identity_update: identityUpdate(name, identifier) };
  const event = "IdentityUpdateCreated";
  const bytes = clientEnvelope(event, identifier, sequenceIds, payload);
  return envelopeCase({
    name,
    event,
    identifier,
    clientEnvelope: bytes,
    sequenceId,
    timestamp,
    key,
  });
}

// A client may write its fields in any order and add its own: nobody may tidy the bytes up.
function unusualBytesCase(name, key, sequenceId, timestamp) {
  const event = "MessageSent";
  const identifier = testBytes(`group of ${name}`, 32);
  const payload = encode("ClientEnvelope", { group_message: groupMessage(name, 100) });
  const aad = authenticatedData(KIND_OF_EVENT[event], identifier, { 0: sequenceId });
  const bytes = concat([payload, "0xc83e2a", encode("ClientEnvelope", { aad })]);
  return envelopeCase({
    name,
    event,
    identifier,
    clientEnvelope: bytes,
    sequenceId,
    timestamp,
    key,
  });
}

function cases() {
  const [a, b, c] = ["a", "b", "c"].map(testKey);
  const manyOriginators = { 0: "299", 100: "7", 4294967295: MAX_UINT64 };
  return [
    groupMessageCase("first group message", a, "1", "1735689600", 300),
    identityUpdateCase("identity update", a, "2", "1735689601", { 0: "1" }),
    groupMessageCase("same time, other node", b, "3", "1735689601", 300, { 0: "2" }),
    groupMessageCase("cursor of three originators", b, "300", "1735690000", 64, manyOriginators),
    groupMessageCase("large group message", c, "70000", "1735699999", 5000, { 0: "69999" }),
    identityUpdateCase("largest sequence id", c, MAX_UINT64, "1735700000", { 0: "70000" }),
    groupMessageCase("largest time", a, "70001", "9223372034", 32, { 0: "70000" }),
    unusualBytesCase("unusual bytes", b, "70002", "1735700001"),
    groupMessageCase("last of a million ids", a, "999999", "1735700002", 32, { 0: "70002" }),
    groupMessageCase("first of the next million", a, "1000000", "1735700003", 32, { 0: "999999" }),
  ];
}

export function envelopeVectors() {
  const all = cases();
  const parities = new Set(all.map(({ signature }) => signature.slice(-2)));
  if (parities.size !== 2) throw new Error("the envelope vectors must cover V = 0 and V = 1");
  return {
    comment:
      "Wire format by protobufjs. digest = keccak256('blockchain|' || unsigned_originator_envelope " +
      "|| transaction_hash); signature = R || S || V by ethers, V in {0, 1}, low S, RFC 6979. " +
      `Zero fields (originator_node_id) are not written. Private keys are for tests only. ${COMMENT}`,
    cases: all,
  };
}

export function envelopeMessage(name) {
  return originatorEnvelope(cases().find((candidate) => candidate.name === name));
}
