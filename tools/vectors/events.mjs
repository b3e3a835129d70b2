// Log data of the contracts' events (XIP-49 section 2.2), all arguments unindexed, and data that
// no contract can have emitted.
import { Interface, concat, dataLength, dataSlice, id, toBeHex } from "ethers";

import { COMMENT, MAX_UINT64, testBytes } from "./primitives.mjs";

const WORD = 32;
const MAX_WORD = `0x${"ff".repeat(WORD)}`;

// `data` with the word that starts at byte `position` replaced.
function withWord(data, position, word) {
  const value = toBeHex(word, WORD);
  const rest = position + WORD;
  return concat([dataSlice(data, 0, position), value, dataSlice(data, rest)]);
}

function withoutLastBytes(data, count) {
  return dataSlice(data, 0, dataLength(data) - count);
}

function withLastByte(data, byte) {
  return concat([withoutLastBytes(data, 1), toBeHex(byte, 1)]);
}

function eventVector(declaration, cases, malformedCases) {
  const contract = new Interface([`event ${declaration}`]);
  const [fragment] = contract.fragments;
  const signature = fragment.format("sighash");
  return {
    name: fragment.name,
    signature,
    topic0: id(signature),
    cases: cases.map(([name, fields]) => {
      const { data } = contract.encodeEventLog(fragment, Object.values(fields));
      return { name, fields, data };
    }),
    malformed: malformedCases((values) => contract.encodeEventLog(fragment, values).data),
  };
}

// groupId | offset | sequenceId | length | payload, padded to a multiple of 32 bytes.
function malformedPayloadEvents(encode) {
  const identifier = testBytes("malformed identifier", 32);
  const good = encode([identifier, testBytes("malformed payload", 33), "7"]);
  const end = dataLength(good);
  return [
    { data: "0x", reason: "truncated: no data" },
    { data: dataSlice(good, 0, 31), reason: "truncated: within the first word" },
    { data: dataSlice(good, 0, 95), reason: "truncated: within the head" },
    { data: dataSlice(good, 0, 96), reason: "truncated: no payload length" },
    { data: dataSlice(good, 0, 127), reason: "truncated: within the payload length" },
    { data: dataSlice(good, 0, 128 + 32), reason: "truncated: within the payload" },
    { data: withoutLastBytes(good, 1), reason: "truncated: within the padding" },
    { data: withWord(good, 32, end), reason: "offset at the end of the data" },
    { data: withWord(good, 32, end + 32), reason: "offset beyond the end of the data" },
    { data: withWord(good, 32, MAX_WORD), reason: "offset 2^256-1" },
    { data: withWord(good, 96, 65), reason: "length beyond the end of the data" },
    { data: withWord(good, 96, MAX_WORD), reason: "length 2^256-1" },
    { data: withWord(good, 64, 2n ** 64n), reason: "uint64 word 2^64" },
    { data: withWord(good, 64, MAX_WORD), reason: "uint64 word 2^256-1" },
    { data: withLastByte(good, 1), reason: "padding of the payload is not zero" },
  ];
}

function payloadCases(identifierName, payloadName) {
  const fields = (label, length, sequenceId) => ({
    [identifierName]: testBytes(`${identifierName} ${label}`, 32),
    [payloadName]: testBytes(`${payloadName} ${label}`, length),
    sequenceId,
  });
  return [
    ["empty payload", fields("empty", 0, "1")],
    ["one byte", fields("one", 1, "2")],
    ["31 bytes", fields("31", 31, "3")],
    ["32 bytes", fields("32", 32, "4")],
    ["33 bytes", fields("33", 33, "256")],
    ["5,000 bytes", fields("5000", 5000, "1204331")],
    ["sequence id above 2^53", fields("large", 64, "9007199254740993")],
    ["largest sequence id", fields("largest", 300, MAX_UINT64)],
    [
      "zero identifier and payload of zeros",
      {
        [identifierName]: `0x${"00".repeat(32)}`,
        [payloadName]: `0x${"00".repeat(40)}`,
        sequenceId: "5",
      },
    ],
  ];
}

const node = (label, httpAddress, isHealthy) => ({
  signingKeyPub: concat(["0x04", testBytes(`signing key ${label}`, 64)]),
  httpAddress,
  isHealthy,
});

const NODE_CASES = [
  ["enabled", { nodeId: "100", node: node("a", "https://node-a.example:5050", true) }],
  ["disabled", { nodeId: "200", node: node("b", "http://127.0.0.1:8080", false) }],
  ["empty address", { nodeId: "300", node: node("c", "", true) }],
  [
    "address of 32 bytes",
    { nodeId: "400", node: node("d", "https://node-d.example.test:5050", true) },
  ],
  ["address beyond ASCII", { nodeId: "500", node: node("e", "https://knoten-ä.example/→", true) }],
  [
    "largest id",
    { nodeId: BigInt(MAX_WORD).toString(), node: node("f", "https://f.example", true) },
  ],
];

// nodeId | offset of node | offset of key | offset of address | isHealthy | key | address
function malformedNodeEvents(encode) {
  const address = "https://node-a.example:5050";
  const good = encode(["100", node("a", address, true)]);
  const end = dataLength(good);
  return [
    { data: "0x", reason: "truncated: no data" },
    { data: dataSlice(good, 0, 64), reason: "truncated: no node" },
    { data: dataSlice(good, 0, 159), reason: "truncated: within the node's head" },
    { data: withoutLastBytes(good, 32), reason: "truncated: no address" },
    { data: withWord(good, 32, end), reason: "offset of the node beyond the end of the data" },
    { data: withWord(good, 64, end), reason: "offset of the key beyond the end of the data" },
    { data: withWord(good, 96, MAX_WORD), reason: "offset of the address 2^256-1" },
    { data: withWord(good, 160, end), reason: "length of the key beyond the end of the data" },
    { data: withWord(good, 128, 2), reason: "bool word 2" },
    { data: withLastByte(good, 1), reason: "padding of the address is not zero" },
  ];
}

const UPGRADE_CASES = [
  [
    "two addresses",
    {
      upgrader: "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f",
      newImplementation: "0x5fbdb2315678afecb367f032d93f642f64180aa3",
    },
  ],
  [
    "zero and largest address",
    {
      upgrader: `0x${"00".repeat(20)}`,
      newImplementation: `0x${"ff".repeat(20)}`,
    },
  ],
];

function malformedUpgradeEvents(encode) {
  const good = encode(Object.values(UPGRADE_CASES[0][1]));
  return [
    { data: "0x", reason: "truncated: no data" },
    { data: withoutLastBytes(good, 1), reason: "truncated: within the last word" },
    { data: withWord(good, 32, MAX_WORD), reason: "address word above 2^160-1" },
  ];
}

export function eventVectors() {
  const events = [
    eventVector(
      "MessageSent(bytes32 groupId, bytes message, uint64 sequenceId)",
      payloadCases("groupId", "message"),
      malformedPayloadEvents,
    ),
    eventVector(
      "IdentityUpdateCreated(bytes32 inboxId, bytes update, uint64 sequenceId)",
      payloadCases("inboxId", "update"),
      malformedPayloadEvents,
    ),
    eventVector(
      "NodeUpdated(uint256 nodeId, (bytes signingKeyPub, string httpAddress, bool isHealthy) node)",
      NODE_CASES,
      malformedNodeEvents,
    ),
    eventVector(
      "UpgradeAuthorized(address upgrader, address newImplementation)",
      UPGRADE_CASES,
      malformedUpgradeEvents,
    ),
  ];
  return { comment: `ABI and topic by ethers, every argument unindexed. ${COMMENT}`, events };
}
