// Transactions of a Safe: their EIP-712 hashes and JSON, owners' signatures of both kinds, the
// calldata that executes them, and batches for MultiSendCallOnly.
import {
  Interface,
  TypedDataEncoder,
  computeAddress,
  concat,
  dataLength,
  getAddress,
  getBytes,
  hashMessage,
  solidityPacked,
  toBeHex,
} from "ethers";

import { COMMENT, testBytes, testKey } from "./primitives.mjs";

const MAX_UINT256 = (2n ** 256n - 1n).toString();
const NOBODY = toBeHex(0, 20);

const TYPES = {
  SafeTx: [
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "data", type: "bytes" },
    { name: "operation", type: "uint8" },
    { name: "safeTxGas", type: "uint256" },
    { name: "baseGas", type: "uint256" },
    { name: "gasPrice", type: "uint256" },
    { name: "gasToken", type: "address" },
    { name: "refundReceiver", type: "address" },
    { name: "nonce", type: "uint256" },
  ],
};

// The executed fields are the signed ones, with the signatures in the nonce's place.
const EXECUTED = TYPES.SafeTx.filter(({ name }) => name !== "nonce");
const SAFE = new Interface([
  `function execTransaction(${EXECUTED.map(({ type }) => type).join(",")},bytes)`,
]);
const MULTI_SEND = new Interface(["function multiSend(bytes transactions)"]);

const OWNERS = ["owner 1", "owner 2", "owner 3"].map(testKey);

// By a key over a hash; what `eth_sign` makes has 4 more in V.
function signed(key, kind, hash) {
  const digest = kind === "eth_sign" ? hashMessage(getBytes(hash)) : hash;
  const { r, s, v } = key.sign(digest);
  const signature = concat([r, s, toBeHex(kind === "eth_sign" ? v + 4 : v, 1)]);
  return { owner: computeAddress(key), kind, signature };
}

function signatures(hash) {
  return OWNERS.map((key, index) => signed(key, index === 1 ? "eth_sign" : "EIP-712", hash));
}

function packed(list) {
  const byAddress = (one, other) => (BigInt(one.owner) < BigInt(other.owner) ? -1 : 1);
  return concat(list.toSorted(byAddress).map(({ signature }) => signature));
}

// No value, and no gas that the Safe repays.
const PLAIN = {
  value: "0",
  operation: 0,
  safeTxGas: "0",
  baseGas: "0",
  gasPrice: "0",
  gasToken: NOBODY,
  refundReceiver: NOBODY,
};

export function safeTxHash(chainId, safe, fields) {
  const message = { ...PLAIN, ...fields };
  return TypedDataEncoder.hash({ chainId, verifyingContract: safe }, TYPES, message);
}

function transactionCase(name, chainId, safe, fields) {
  const message = { ...PLAIN, ...fields };
  const domain = { chainId, verifyingContract: safe };
  const hash = safeTxHash(chainId, safe, fields);
  const list = signatures(hash);
  return {
    name,
    chainId,
    safe,
    ...message,
    domainHash: TypedDataEncoder.hashDomain(domain),
    messageHash: TypedDataEncoder.hashStruct("SafeTx", TYPES, message),
    hash,
    typedData: TypedDataEncoder.getPayload(domain, TYPES, message),
    signatures: list,
    packed: packed(list),
    execCalldata: SAFE.encodeFunctionData("execTransaction", [
      ...EXECUTED.map((field) => message[field.name]),
      packed(list),
    ]),
  };
}

export function batch(calls) {
  const transactions = concat(
    calls.map(({ target, calldata }) =>
      solidityPacked(
        ["uint8", "address", "uint256", "uint256", "bytes"],
        [0, target, 0, dataLength(calldata), calldata],
      ),
    ),
  );
  return MULTI_SEND.encodeFunctionData("multiSend", [transactions]);
}

function batchCase(name, calls) {
  return { name, calls, calldata: batch(calls) };
}

export function address(label) {
  return getAddress(testBytes(label, 20));
}

export function safeVectors() {
  const [safe, target] = [address("safe"), address("target")];
  const pair = batchCase("two calls", [
    { target, calldata: testBytes("first", 68) },
    { target: address("other target"), calldata: testBytes("second", 100) },
  ]);
  return {
    comment:
      "Hashes, JSON and signatures as ethers makes them; V is 27 or 28 for EIP-712, 31 or 32 for " +
      `eth_sign; packed by ascending address. Keys are for tests only. ${COMMENT}`,
    transactions: [
      transactionCase("one call", 31337, safe, {
        to: target,
        data: testBytes("call", 68),
        nonce: "0",
      }),
      transactionCase("no calldata", 1, safe, { to: target, data: "0x", nonce: "1" }),
      transactionCase("a batch", 11155111, safe, {
        to: address("multi send"),
        data: pair.calldata,
        operation: 1,
        nonce: "42",
      }),
      transactionCase("every field", 10, address("other safe"), {
        to: target,
        value: MAX_UINT256,
        data: testBytes("all", 31),
        operation: 1,
        safeTxGas: "1000000",
        baseGas: "21000",
        gasPrice: "18446744073709551616",
        gasToken: address("token"),
        refundReceiver: address("receiver"),
        nonce: MAX_UINT256,
      }),
    ],
    batches: [
      pair,
      batchCase("one call without calldata", [{ target, calldata: "0x" }]),
      batchCase("three of one target", [
        { target, calldata: testBytes("first", 4) },
        { target, calldata: testBytes("first", 4) },
        { target, calldata: testBytes("long", 300) },
      ]),
    ],
  };
}
