// Signed reports of MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY (XIP-49 sections 3.2.7 and 3.2.8).
import { envelopeMessage } from "./envelopes.mjs";
import { COMMENT, signLabelled, testKey } from "./primitives.mjs";
import { encode } from "./wire.mjs";

const BLOCKCHAIN_INCONSISTENCY = 8;

function reportCase(name, key, serverTime, { envelopes, ...fields }) {
  const unsigned_misbehavior_report = encode("UnsignedMisbehaviorReport", {
    ...fields,
    type: BLOCKCHAIN_INCONSISTENCY,
    safety: { envelopes: envelopes.map(envelopeMessage) },
  });
  const { digest, signature } = signLabelled(key, "misbehavior|", unsigned_misbehavior_report);
  return {
    name,
    reporter_time_ns: fields.reporter_time_ns,
    misbehaving_node_id: fields.misbehaving_node_id,
    type: BLOCKCHAIN_INCONSISTENCY,
    envelopes,
    submitted_by_node: fields.submitted_by_node ?? false,
    server_time_ns: serverTime,
    unsigned_misbehavior_report,
    private_key: key.privateKey,
    digest,
    signature,
    public_key: key.publicKey,
    misbehavior_report: encode("MisbehaviorReport", {
      server_time_ns: serverTime,
      unsigned_misbehavior_report,
      signature: { bytes: signature },
    }),
  };
}

export function misbehaviorReportVectors() {
  return {
    comment:
      "Wire format by protobufjs. digest = keccak256('misbehavior|' || unsigned_misbehavior_report); " +
      "signature = R || S || V by ethers, V in {0, 1}, low S, RFC 6979. `envelopes` names cases of " +
      `envelopes.json, in order. Private keys are for tests only. ${COMMENT}`,
    cases: [
      reportCase("one envelope, from a client", testKey("reporter"), "1735689701000000001", {
        reporter_time_ns: "1735689700123456789",
        misbehaving_node_id: 100,
        envelopes: ["first group message"],
      }),
      reportCase("two envelopes, from a node", testKey("b"), "1735689801000000001", {
        reporter_time_ns: "1735689800000000000",
        misbehaving_node_id: 4294967200,
        submitted_by_node: true,
        envelopes: ["identity update", "unusual bytes"],
      }),
    ],
  };
}
