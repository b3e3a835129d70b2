// The results that the contracts must give for the same inputs as the Python library: event topics,
// error selectors, storage slots, node ids, key addresses, sequence ids and log data.
import { Interface, computeAddress, dataSlice, id, keccak256, toBeHex, toBigInt } from "ethers";

import { COMMENT, testBytes, testKey } from "./primitives.mjs";
import { GROUP_MESSAGE, IDENTITY_UPDATE, topicOf } from "./topics.mjs";

const NODE_INCREMENT = 100;

const EVENTS = {
  [GROUP_MESSAGE]: "MessageSent(bytes32,bytes,uint64)",
  [IDENTITY_UPDATE]: "IdentityUpdateCreated(bytes32,bytes,uint64)",
};
const NODE_UPDATED = "NodeUpdated(uint256,(bytes,string,bool))";

// The contracts' own declarations, by the interface that makes them.
const DECLARATIONS = {
  IGroupMessages: { events: [EVENTS[GROUP_MESSAGE]], errors: [] },
  IIdentityUpdates: { events: [EVENTS[IDENTITY_UPDATE]], errors: [] },
  IOriginatorSequence: {
    events: [],
    errors: ["InvalidSequenceCallers(address,address)", "UnauthorizedSequenceCaller(address)"],
  },
  ISequencedLog: {
    events: [
      "UpgradeAuthorized(address,address)",
      "Paused(address)",
      "Unpaused(address)",
      "PayloadBoundsSet(address,uint32,uint32)",
    ],
    errors: [
      "InvalidOriginatorSequence(address)",
      "OriginatorSequenceChanged(address,address)",
      "TopicKindChanged(uint256,uint256)",
      "InvalidAdmin(address)",
      "LastAdmin(address)",
      "EnforcedPause()",
      "ExpectedPause()",
      "PayloadSizeOutOfBounds(uint256,uint256,uint256)",
      "InvalidPayloadBounds(uint32,uint32,uint32)",
    ],
  },
  INodeRegistry: {
    events: [
      NODE_UPDATED,
      "NodeAdded(address,uint256,address)",
      "NodeHealthUpdated(address,uint256,bool)",
      "NodeTransferred(address,uint256,address)",
      "NodeHttpAddressUpdated(address,uint256,string)",
      "HttpAddressUpdatesOpenChanged(address,bool)",
    ],
    errors: [
      "InvalidSigningKeyLength(uint256)",
      "InvalidSigningKeyPrefix(bytes1)",
      "SigningKeyNotOnCurve(uint256,uint256)",
      "SigningKeyAlreadyUsed(uint256)",
      "UnknownSigningKey(address)",
      "EmptyHttpAddress()",
      "HttpAddressTooLong(uint256,uint256)",
      "HttpAddressUpdatesClosed(uint256)",
      "NotNodeHolder(uint256,address)",
      "ApprovalsDisabled(address)",
      "RenouncingDisabled()",
    ],
  },
};

function declared(list, hash) {
  return Object.entries(DECLARATIONS).flatMap(([declaredBy, declarations]) =>
    declarations[list].map((signature) => ({ declaredBy, signature, ...hash(signature) })),
  );
}

// ERC-7201: the namespace's hash less one, hashed again, with the last byte cleared.
function namespaceSlot(namespace) {
  const word = toBeHex(toBigInt(id(namespace)) - 1n, 32);
  return toBeHex((toBigInt(keccak256(word)) >> 8n) << 8n, 32);
}

function storageSlots() {
  const implementation = "eip1967.proxy.implementation";
  return [
    { name: "chainkit.storage.SequencedLog", slot: namespaceSlot("chainkit.storage.SequencedLog") },
    { name: implementation, slot: toBeHex(toBigInt(id(implementation)) - 1n, 32) },
  ];
}

function logData(signature, values) {
  const contract = new Interface([`event ${signature}`]);
  return contract.encodeEventLog(contract.fragments[0], values).data;
}

// Nodes in the order in which they are added to an empty registry.
function nodes() {
  const httpAddresses = ["https://a.example:5050", "http://127.0.0.1:8080", "https://knoten-ä.example/→"];
  return httpAddresses.map((httpAddress, index) => {
    const nodeId = (index + 1) * NODE_INCREMENT;
    const signingKeyPub = testKey(`node ${nodeId}`).publicKey;
    return {
      nodeId,
      holder: computeAddress(testKey(`holder ${nodeId}`).publicKey),
      signingKeyPub,
      keyAddress: computeAddress(signingKeyPub),
      httpAddress,
      data: logData(NODE_UPDATED, [nodeId, [signingKeyPub, httpAddress, true]]),
    };
  });
}

// Payloads in the order in which they are published to two contracts with a new sequence.
function publications() {
  const order = [
    [GROUP_MESSAGE, 10],
    [IDENTITY_UPDATE, 31],
    [IDENTITY_UPDATE, 32],
    [GROUP_MESSAGE, 33],
    [GROUP_MESSAGE, 300],
    [IDENTITY_UPDATE, 2000],
  ];
  return order.map(([kind, length], index) => {
    const sequenceId = index + 1;
    const identifier = testBytes(`published identifier ${sequenceId}`, 32);
    const payload = testBytes(`published payload ${sequenceId}`, length);
    return {
      kind,
      identifier,
      payload,
      sequenceId,
      topic: topicOf(kind, identifier),
      topic0: id(EVENTS[kind]),
      data: logData(EVENTS[kind], [identifier, payload, sequenceId]),
    };
  });
}

export function contractVectors() {
  return {
    comment: `Answers of the contracts, by ethers. ${COMMENT}`,
    events: declared("events", (signature) => ({ topic0: id(signature) })),
    errors: declared("errors", (signature) => ({ selector: dataSlice(id(signature), 0, 4) })),
    storageSlots: storageSlots(),
    nodes: nodes(),
    publications: publications(),
  };
}
