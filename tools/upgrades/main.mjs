// Keeps the contracts upgradeable: see the usage below.
import { relative } from "node:path";
import { argv, exit } from "node:process";
import { parseArgs } from "node:util";

import { CompilationError, PROJECT } from "./build_info.mjs";
import { upgradesFrom } from "./check.mjs";
import { newestRelease, ReleaseError, RELEASES, writeRelease } from "./releases.mjs";

const USAGE = `Checks every upgrade against the last release, or writes a release's build info.

usage: node tools/upgrades/main.mjs check [--root FOLDER] [--releases FOLDER] [--json]
       node tools/upgrades/main.mjs write VERSION [--releases FOLDER] [--replace]

  --root FOLDER      read contracts/ and tests/solidity/ below this folder instead
  --releases FOLDER  keep releases here instead of in releases/
  --json             print the answer as JSON
  --replace          overwrite a version that was never deployed

Example: node tools/upgrades/main.mjs check

Exit codes: 0 every upgrade is safe, 1 one is not, 2 it could not be found out.`;

const OPTIONS = {
  help: { type: "boolean" },
  json: { type: "boolean" },
  releases: { type: "string", default: RELEASES },
  replace: { type: "boolean" },
  root: { type: "string", default: PROJECT },
};

function check({ root, releases, json }) {
  const release = newestRelease(releases);
  const upgrades = upgradesFrom(release, root);
  const safe = upgrades.every(({ faults }) => faults.length === 0);
  if (json) {
    console.log(JSON.stringify({ release: release.version, safe, upgrades }, null, 2));
  } else {
    upgrades.forEach((upgrade) => print(upgrade, release.version));
  }
  return safe ? 0 : 1;
}

function print({ contract, reference, faults }, version) {
  const verdict = faults.length === 0 ? "safe" : "not safe";
  console.log(`${contract}: ${verdict} after ${reference.split(":")[1]} ${version}`);
  faults.forEach(({ kind, place, text }) => console.log(`  ${kind}: ${text} (${place})`));
}

function write(version, { replace, releases }) {
  const { path, size } = writeRelease(version, { replace, folder: releases });
  console.log(`${relative(".", path)}: ${size.toLocaleString("en")} bytes`);
  return 0;
}

function main() {
  const args = argv.slice(2);
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [command, ...rest] = positionals;
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (command === "check" && rest.length === 0) return check(values);
  if (command === "write" && rest.length === 1) return write(rest[0], values);
  console.error(USAGE);
  return 2;
}

try {
  exit(main());
} catch (error) {
  const expected = [CompilationError, ReleaseError].some((kind) => error instanceof kind);
  console.error(expected || error.code?.startsWith("ERR_PARSE_ARGS") ? error.message : error);
  exit(2);
}
