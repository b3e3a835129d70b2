// Computes the golden vectors without any code of chainkit: ethers for keccak256, secp256k1 and
// the ABI, protobufjs with its own descriptors for the wire format.
//
//   node tools/vectors/generate.mjs tests/vectors          write the files
//   node tools/vectors/generate.mjs tests/vectors --check  compare, name what differs, exit 1
//
// The output depends on nothing but this folder and the locked npm packages.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv, exit } from "node:process";

import { clientEnvelopeVectors } from "./client_envelopes.mjs";
import { contractVectors } from "./contracts.mjs";
import { envelopeVectors } from "./envelopes.mjs";
import { eventVectors } from "./events.mjs";
import { keystoreVectors } from "./keystores.mjs";
import { misbehaviorReportVectors } from "./misbehavior_reports.mjs";
import { originatedEnvelopeVectors } from "./originated_envelopes.mjs";
import { proposalVectors } from "./proposals.mjs";
import { publicKeyVectors } from "./public_keys.mjs";
import { safeVectors } from "./safe.mjs";
import { topicVectors } from "./topics.mjs";

const FILES = {
  "client_envelopes.json": clientEnvelopeVectors,
  "contracts.json": contractVectors,
  "envelopes.json": envelopeVectors,
  "events.json": eventVectors,
  "keystores.json": keystoreVectors,
  "misbehavior_reports.json": misbehaviorReportVectors,
  "originated_envelopes.json": originatedEnvelopeVectors,
  "proposals.json": proposalVectors,
  "public_keys.json": publicKeyVectors,
  "safe.json": safeVectors,
  "topics.json": topicVectors,
};

function contentOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

function main(folder, check) {
  let outdated = 0;
  for (const [name, vectors] of Object.entries(FILES)) {
    const path = join(folder, name);
    const content = `${JSON.stringify(vectors(), null, 2)}\n`;
    if (!check) {
      writeFileSync(path, content);
    } else if (contentOf(path) !== content) {
      console.log(`${path}: differs from what tools/vectors/generate.mjs computes`);
      outdated += 1;
    }
  }
  return outdated === 0 ? 0 : 1;
}

const options = argv.slice(2).filter((argument) => argument.startsWith("--"));
const folders = argv.slice(2).filter((argument) => !argument.startsWith("--"));
if (folders.length !== 1 || options.some((option) => option !== "--check")) {
  console.error("usage: node tools/vectors/generate.mjs FOLDER [--check]");
  exit(2);
}
const check = options.includes("--check");
if (!check) mkdirSync(folders[0], { recursive: true });
exit(main(folders[0], check));
