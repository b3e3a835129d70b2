// A council's possible calls, and proposals for a Safe: calldata, grounds in the one form of their
// JSON, the trailer behind the last call, and the SafeTx hash that owners compare.
import { Interface, concat, dataSlice, id, sha256, toBeHex, toUtf8Bytes } from "ethers";

import { COMMENT } from "./primitives.mjs";
import { address, batch, safeTxHash } from "./safe.mjs";

const LOG_FUNCTIONS = [
  "pause()",
  "unpause()",
  "grantRole(bytes32,address)",
  "revokeRole(bytes32,address)",
  "setPayloadBounds(uint32,uint32)",
  "upgradeToAndCall(address,bytes)",
];

// By contract, what its council proposes and nothing else.
const FUNCTIONS = {
  NodeRegistry: [
    "addNode(address,bytes,string)",
    "updateHealth(uint256,bool)",
    "transferFrom(address,address,uint256)",
    "setHttpAddressUpdatesOpen(bool)",
    "updateHttpAddress(uint256,string)",
    "transferOwnership(address)",
    "acceptOwnership()",
  ],
  GroupMessages: LOG_FUNCTIONS,
  IdentityUpdates: LOG_FUNCTIONS,
  Safe: [
    "addOwnerWithThreshold(address,uint256)",
    "removeOwner(address,address,uint256)",
    "swapOwner(address,address,address)",
    "changeThreshold(uint256)",
  ],
};

// Begins the trailer; the digits are the length of the expiry behind it, in bytes.
const MARK = toUtf8Bytes("XIP-49/1");
const EXPIRY_LENGTH = 8;

const CHAIN_ID = 31337;
const ACCOUNTS = {
  safe: address("safe"),
  multiSend: address("multi send"),
  NodeRegistry: address("node registry"),
  GroupMessages: address("group messages"),
  IdentityUpdates: address("identity updates"),
};

function functions() {
  return Object.entries(FUNCTIONS).flatMap(([contract, signatures]) =>
    signatures.map((signature) => ({
      contract,
      signature,
      selector: dataSlice(id(signature), 0, 4),
    })),
  );
}

function callOf(contract, signature, ...values) {
  const target = ACCOUNTS[contract];
  const calldata = new Interface([`function ${signature}`]).encodeFunctionData(signature, values);
  return { contract, target, signature, calldata };
}

// JSON on one line, names in their order, no space between, and a line feed.
function line(value) {
  return `${JSON.stringify(sorted(value))}\n`;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

function proposalCase(name, nonce, calls, grounds) {
  const digest = sha256(toUtf8Bytes(line(grounds)));
  const trailer = concat([MARK, toBeHex(grounds.expires, EXPIRY_LENGTH), digest]);
  const made = calls.map(({ target, calldata }, index) => ({
    target,
    calldata: index === calls.length - 1 ? concat([calldata, trailer]) : calldata,
  }));
  const fields =
    made.length === 1
      ? { to: made[0].target, data: made[0].calldata, operation: 0 }
      : { to: ACCOUNTS.multiSend, data: batch(made), operation: 1 };
  const hash = safeTxHash(CHAIN_ID, ACCOUNTS.safe, { ...fields, nonce });
  return {
    name,
    nonce,
    calls,
    grounds,
    line: line(grounds),
    expires: grounds.expires,
    digest,
    trailer,
    ...fields,
    hash,
  };
}

export function proposalVectors() {
  const disabled = callOf("NodeRegistry", "updateHealth(uint256,bool)", 300, false);
  const bounded = callOf("GroupMessages", "setPayloadBounds(uint32,uint32)", 1, 4096);
  return {
    comment: `Proposals as ethers and Node's own JSON make them. ${COMMENT}`,
    functions: functions(),
    chainId: CHAIN_ID,
    accounts: ACCOUNTS,
    proposals: [
      proposalCase("one call", "7", [disabled], {
        reason: 'node 300 served "what the chain does not hold" \\ twice',
        evidence: [{ name: "node-300", sha256: sha256("0x01").slice(2) }],
        before: { "node 300 status": "enabled" },
        after: { "node 300 status": "disabled" },
        runs: {},
        expires: 4000000000,
      }),
      proposalCase("a batch", "8", [disabled, callOf("IdentityUpdates", "pause()"), bounded], {
        reason: "stop what was found",
        evidence: [],
        before: {
          "node 300 status": "enabled",
          "IdentityUpdates paused": "no",
          "GroupMessages payload bounds": "0 to 262144 bytes",
        },
        after: {
          "node 300 status": "disabled",
          "IdentityUpdates paused": "yes",
          "GroupMessages payload bounds": "1 to 4096 bytes",
        },
        runs: {
          IdentityUpdates: address("identity updates' code"),
          GroupMessages: address("group messages' code"),
        },
        expires: 1,
      }),
    ],
  };
}
