// Payer envelopes in both forms, and the envelopes of nodes that originate them (XIP-49 sections
// 3.1.2 and 3.2.1; fields that XIP-49 does not have are those of XMTP's public schema).
import { toBeHex, toUtf8Bytes } from "ethers";

import { authenticatedData, groupMessage } from "./client_envelopes.mjs";
import { COMMENT, MAX_UINT64, signLabelled, testBytes, testKey } from "./primitives.mjs";
import { GROUP_MESSAGE } from "./topics.mjs";
import { encode } from "./wire.mjs";

const PAYER = testKey("payer");
const MAX_UINT32 = 4294967295;

function clientEnvelope(name, length) {
  const aad = authenticatedData(GROUP_MESSAGE, testBytes(`group of ${name}`, 16), { 0: "41" });
  return encode("ClientEnvelope", { aad, group_message: groupMessage(name, length) });
}

function payerCase({ name, target, retention, length = 300 }) {
  const client_envelope = clientEnvelope(name, length);
  const signed =
    target === null
      ? signLabelled(PAYER, "payer|", client_envelope)
      : signLabelled(PAYER, "target|", toBeHex(target, 4), toUtf8Bytes("payer|"), client_envelope);
  // Payers before it, and those of others, leave it out.
  const of_retention = target === null
    ? null
    : signLabelled(PAYER, "retention|", toBeHex(retention ?? 0, 4), signed.digest).signature;
  return {
    name,
    client_envelope,
    target_originator: target,
    retention_days: retention,
    digest: signed.digest,
    signature: signed.signature,
    retention_signature: of_retention,
    payer_envelope: encode("PayerEnvelope", {
      unsigned_client_envelope: client_envelope,
      payer_signature: { bytes: signed.signature },
      ...(target !== null && { target_originator: target }),
      ...(retention !== null && { message_retention_days: retention }),
      ...(of_retention !== null && { retention_signature: of_retention }),
    }),
  };
}

function originatedCase(payer, { key, originator, sequenceId, time, expiry }) {
  const unsigned_originator_envelope = encode("UnsignedOriginatorEnvelope", {
    originator_node_id: originator,
    originator_sequence_id: sequenceId,
    originator_ns: time,
    payer_envelope: {
      unsigned_client_envelope: payer.client_envelope,
      payer_signature: { bytes: payer.signature },
      ...(payer.target_originator !== null && { target_originator: payer.target_originator }),
      ...(payer.retention_days !== null && { message_retention_days: payer.retention_days }),
      ...(payer.retention_signature !== null && { retention_signature: payer.retention_signature }),
    },
    ...(expiry !== null && { expiry_unixtime: expiry }),
  });
  const signed = signLabelled(key, "originator|", unsigned_originator_envelope);
  return {
    name: payer.name,
    payer_envelope: payer.payer_envelope,
    originator_id: originator,
    sequence_id: sequenceId,
    originator_ns: time,
    expiry_unixtime: expiry,
    private_key: key.privateKey,
    public_key: key.publicKey,
    unsigned_originator_envelope,
    digest: signed.digest,
    signature: signed.signature,
    originator_envelope: encode("OriginatorEnvelope", {
      unsigned_originator_envelope,
      originator_signature: { bytes: signed.signature },
    }),
  };
}

export function originatedEnvelopeVectors() {
  const payers = [
    payerCase({ name: "without a target", target: null, retention: null }),
    payerCase({ name: "with a target", target: 100, retention: null }),
    payerCase({ name: "with a target and a retention", target: 200, retention: 30 }),
    payerCase({ name: "without a target, with a retention", target: null, retention: 365 }),
    payerCase({ name: "largest numbers", target: MAX_UINT32, retention: MAX_UINT32, length: 9000 }),
  ];
  const [a, b] = ["a", "b"].map(testKey);
  const settings = [
    { key: a, originator: 100, sequenceId: "1", time: "1735689600123456789", expiry: null },
    { key: a, originator: 100, sequenceId: "2", time: "1735689600123456789", expiry: "1738281600" },
    { key: b, originator: 200, sequenceId: "300", time: "1735690000000000000", expiry: "1" },
    { key: b, originator: 100, sequenceId: "3", time: "1735690000000000001", expiry: null },
    {
      key: a,
      originator: MAX_UINT32,
      sequenceId: MAX_UINT64,
      time: "9223372036854775807",
      expiry: MAX_UINT64,
    },
  ];
  return {
    comment:
      "Wire format by protobufjs. A payer's digest = keccak256('payer|' || client_envelope), or " +
      "keccak256('target|' || target as 4 bytes || 'payer|' || client_envelope); an originator's = " +
      "keccak256('originator|' || unsigned_originator_envelope). Null: the field is not written. " +
      `Private keys are for tests only. ${COMMENT}`,
    payer: { private_key: PAYER.privateKey, public_key: PAYER.publicKey },
    payer_envelopes: payers,
    originated_envelopes: payers.map((payer, index) => originatedCase(payer, settings[index])),
  };
}
