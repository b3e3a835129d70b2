// Payloads as anybody may post them (XIP-49 section 3.3.2), and whether they may be served.
import { concat, dataLength, dataSlice } from "ethers";

import { COMMENT, MAX_UINT64, testBytes, testKey, signLabelled } from "./primitives.mjs";
import { GROUP_MESSAGE, IDENTITY_UPDATE, WELCOME, topicOf } from "./topics.mjs";
import { encode } from "./wire.mjs";

export const KIND_OF_EVENT = {
  MessageSent: GROUP_MESSAGE,
  IdentityUpdateCreated: IDENTITY_UPDATE,
};

export function groupMessage(label, length) {
  return {
    v1: {
      data: testBytes(`message ${label}`, length),
      sender_hmac: testBytes(`hmac ${label}`, 32),
    },
  };
}

export function identityUpdate(label, inboxId) {
  const { signature } = signLabelled(testKey(`wallet ${label}`), "identity|", inboxId);
  const signed = { erc_191: { bytes: signature } };
  return {
    actions: [
      {
        create_inbox: {
          initial_identifier: testBytes(`wallet address ${label}`, 20),
          nonce: "1",
          initial_identifier_signature: signed,
          initial_identifier_kind: 1,
        },
      },
      {
        add: {
          new_member_identifier: { installation_public_key: testBytes(`app ${label}`, 32) },
          existing_member_signature: signed,
        },
      },
    ],
    client_timestamp_ns: "1735689600123456789",
    inbox_id: inboxId.slice(2),
  };
}

export function authenticatedData(kind, identifier, sequenceIds) {
  return {
    target_topic: topicOf(kind, identifier),
    ...(sequenceIds && { last_seen: { node_id_to_sequence_id: sequenceIds } }),
  };
}

const GROUP_ID = testBytes("client envelope group", 32);
const INBOX_ID = testBytes("client envelope inbox", 32);
const OTHER_ID = testBytes("client envelope other", 32);

const GROUP_AAD = authenticatedData(GROUP_MESSAGE, GROUP_ID, { 0: "41" });
const INBOX_AAD = authenticatedData(IDENTITY_UPDATE, INBOX_ID, { 0: "41" });
const MESSAGE = groupMessage("client envelope", 200);
const UPDATE = identityUpdate("client envelope", INBOX_ID);
const WELCOME_MESSAGE = {
  v1: { installation_key: OTHER_ID, data: testBytes("welcome", 64), hpke_public_key: OTHER_ID },
};
const KEY_PACKAGE = { key_package: { key_package_tls_serialized: testBytes("key package", 64) } };

const VALID_GROUP = encode("ClientEnvelope", { aad: GROUP_AAD, group_message: MESSAGE });
const VALID_UPDATE = encode("ClientEnvelope", { aad: INBOX_AAD, identity_update: UPDATE });

// Field 1000 (length-delimited), field 1001 (varint) and field 1002 (64 bits): a newer client's.
const UNKNOWN_FIELDS = "0xc23e03010203c83e2ad13e0102030405060708";

function group(name, reason, fields, suffix = "0x") {
  return messageSent(name, reason, concat([encode("ClientEnvelope", fields), suffix]));
}

function update(name, reason, fields) {
  return identityUpdateCreated(name, reason, encode("ClientEnvelope", fields));
}

function messageSent(name, reason, payload) {
  return clientEnvelopeCase(name, "MessageSent", GROUP_ID, payload, reason);
}

function identityUpdateCreated(name, reason, payload) {
  return clientEnvelopeCase(name, "IdentityUpdateCreated", INBOX_ID, payload, reason);
}

function clientEnvelopeCase(name, event, identifier, payload, reason) {
  return { name, event, identifier, payload, valid: reason === null, reason };
}

function validCases() {
  const anywhere = { 0: "41", 100: "7", 4294967295: MAX_UINT64 };
  const aadWithoutCursor = authenticatedData(GROUP_MESSAGE, GROUP_ID);
  const aadOnly = encode("ClientEnvelope", { aad: GROUP_AAD });
  const messageOnly = encode("ClientEnvelope", { group_message: MESSAGE });
  const updateOnly = encode("ClientEnvelope", { identity_update: UPDATE });
  const noOriginator = encode("ClientEnvelope", { aad: { last_seen: GROUP_AAD.last_seen } });
  const zero = { target_originator: 0, ...GROUP_AAD };
  return [
    messageSent("group message", null, VALID_GROUP),
    identityUpdateCreated("identity update", null, VALID_UPDATE),
    messageSent("unknown fields", null, concat([VALID_GROUP, UNKNOWN_FIELDS])),
    group("no cursor", null, { aad: aadWithoutCursor, group_message: MESSAGE }),
    group("cursor of three originators", null, {
      aad: authenticatedData(GROUP_MESSAGE, GROUP_ID, anywhere),
      group_message: MESSAGE,
    }),
    group("originator 0 written out", null, { aad: zero, group_message: MESSAGE }),
    group("empty group message", null, { aad: GROUP_AAD, group_message: {} }),
    messageSent("payload before aad", null, concat([messageOnly, aadOnly])),
    update("empty identity update", null, { aad: INBOX_AAD, identity_update: {} }),
  ];
}

function unreadableCases() {
  const reason = "not a ClientEnvelope";
  const half = Math.floor(dataLength(VALID_GROUP) / 2);
  return [
    messageSent("random bytes", reason, testBytes("random payload", 120)),
    messageSent("a byte", reason, "0x0a"),
    messageSent("truncated in the middle", reason, dataSlice(VALID_GROUP, 0, half)),
    messageSent(
      "last byte cut off",
      reason,
      dataSlice(VALID_GROUP, 0, dataLength(VALID_GROUP) - 1),
    ),
    identityUpdateCreated("truncated update", reason, dataSlice(VALID_UPDATE, 0, 90)),
    messageSent("wire type 7", reason, concat([VALID_GROUP, "0x0f01"])),
  ];
}

// Bytes that some reader of protobuf reads otherwise than the others, or not at all.
function differingCases() {
  const reason = (field, deviation) => `readers differ on these bytes: ${field} has ${deviation}`;
  const twice = "a second value of a field, or of a oneof, that has one";
  const aadOnly = encode("ClientEnvelope", { aad: GROUP_AAD });
  const messageOnly = encode("ClientEnvelope", { group_message: MESSAGE });
  const updateOnly = encode("ClientEnvelope", { identity_update: UPDATE });
  const noOriginator = encode("ClientEnvelope", { aad: { last_seen: GROUP_AAD.last_seen } });
  const updateWithBadText = { ...UPDATE, inbox_id: "%" };
  const badText = encode("ClientEnvelope", { aad: INBOX_AAD, identity_update: updateWithBadText });
  return [
    messageSent(
      "aad in two parts",
      reason("ClientEnvelope.aad", twice),
      concat([noOriginator, messageOnly, aadOnly]),
    ),
    messageSent(
      "two payloads, last one fits",
      reason("ClientEnvelope.group_message", twice),
      concat([aadOnly, updateOnly, messageOnly]),
    ),
    messageSent(
      "two payloads, last one does not fit",
      reason("ClientEnvelope.identity_update", twice),
      concat([aadOnly, messageOnly, updateOnly]),
    ),
    messageSent(
      "field number 0",
      reason("ClientEnvelope.unknown", "a field with the number 0"),
      concat([VALID_GROUP, "0x0001"]),
    ),
    // The last byte of the encoding is the only byte of inbox_id: 0xff is never UTF-8.
    identityUpdateCreated(
      "inbox_id is not UTF-8",
      reason("IdentityUpdate.inbox_id", "text that is not UTF-8"),
      concat([dataSlice(badText, 0, dataLength(badText) - 1), "0xff"]),
    ),
  ];
}

function missingCases() {
  return [
    messageSent("empty payload", "no aad", "0x"),
    identityUpdateCreated("empty update", "no aad", "0x"),
    messageSent("unknown fields only", "no aad", UNKNOWN_FIELDS),
    group("payload without aad", "no aad", { group_message: MESSAGE }),
    update("update without aad", "no aad", { identity_update: UPDATE }),
    group("aad without payload", "no payload", { aad: GROUP_AAD }),
    group("aad and unknown payload", "no payload", { aad: GROUP_AAD }, UNKNOWN_FIELDS),
    update("update aad without payload", "no payload", { aad: INBOX_AAD }),
  ];
}

function wrongOriginatorCases() {
  const reason = "target originator is not 0";
  const aad = (target_originator) => ({ ...GROUP_AAD, target_originator });
  const elsewhere = { target_originator: 100, target_topic: topicOf(GROUP_MESSAGE, OTHER_ID) };
  return [
    group("originator 100", reason, { aad: aad(100), group_message: MESSAGE }),
    group("largest originator", reason, { aad: aad(4294967295), group_message: MESSAGE }),
    group("other originator and other topic", reason, { aad: elsewhere, group_message: MESSAGE }),
    update("update for originator 100", reason, {
      aad: { ...INBOX_AAD, target_originator: 100 },
      identity_update: UPDATE,
    }),
  ];
}

function wrongTopicCases() {
  const reason = "target topic does not match";
  const withTopic = (target_topic) => ({ aad: { target_topic }, group_message: MESSAGE });
  const good = GROUP_AAD.target_topic;
  const inbox = authenticatedData(GROUP_MESSAGE, INBOX_ID);
  return [
    group("empty aad", reason, { aad: {}, group_message: MESSAGE }),
    group("other group", reason, withTopic(topicOf(GROUP_MESSAGE, OTHER_ID))),
    group("kind byte of a welcome", reason, withTopic(topicOf(WELCOME, GROUP_ID))),
    group("no kind byte", reason, withTopic(GROUP_ID)),
    group("one byte short", reason, withTopic(dataSlice(good, 0, 32))),
    group("one byte more", reason, withTopic(concat([good, "0x00"]))),
    update("kind byte of a group message", reason, { aad: inbox, identity_update: UPDATE }),
  ];
}

function wrongPayloadCases() {
  const reason = "payload kind does not match topic";
  return [
    group("identity update to a group", reason, { aad: GROUP_AAD, identity_update: UPDATE }),
    group("welcome to a group", reason, { aad: GROUP_AAD, welcome_message: WELCOME_MESSAGE }),
    group("key package to a group", reason, { aad: GROUP_AAD, upload_key_package: KEY_PACKAGE }),
    update("group message to an inbox", reason, { aad: INBOX_AAD, group_message: MESSAGE }),
  ];
}

export function clientEnvelopeVectors() {
  return {
    comment:
      "Wire format by protobufjs. The reason is that of the first rule that fails, in this order: " +
      "parses, has aad, target_originator is 0, target_topic is kind byte || identifier, a payload " +
      `is set, its kind is the topic's. ${COMMENT}`,
    cases: [
      ...validCases(),
      ...unreadableCases(),
      ...differingCases(),
      ...missingCases(),
      ...wrongOriginatorCases(),
      ...wrongTopicCases(),
      ...wrongPayloadCases(),
    ],
  };
}
