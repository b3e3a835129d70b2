// Compiles contracts into the build info that OpenZeppelin's upgrades-core reads: the compiler's
// input and output, and in addition the output of the same sources with each ERC-7201 struct made a
// state variable, because that is how upgrades-core learns the slots and sizes inside a namespace.
//
// The same sources give the same bytes: no time, no path of this machine, no random name.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const solc = require("solc");
const { makeNamespacedInput } = require("@openzeppelin/upgrades-core");

export const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

// As in ape-config.yaml, so that a release holds the bytecode that is deployed.
const SETTINGS = {
  evmVersion: "cancun",
  optimizer: { enabled: true, runs: 200 },
  remappings: [
    "@openzeppelin/contracts-upgradeable=node_modules/@openzeppelin/contracts-upgradeable",
    "@openzeppelin/contracts=node_modules/@openzeppelin/contracts",
  ],
};

const OUTPUTS = {
  "*": {
    "*": [
      "storageLayout",
      "evm.bytecode.object",
      "evm.bytecode.linkReferences",
      "evm.methodIdentifiers",
    ],
    "": ["ast"],
  },
};

/** The sources do not compile. */
export class CompilationError extends Error {}

/**
 * Compile the named sources and all that they import.
 *
 * @param names paths such as "contracts/GroupMessages.sol".
 * @param folder where all sources but the packages' are read; those are read in the project.
 * @param optimized false saves most of the time, and changes nothing that an upgrade depends on.
 * @returns the build info, in upgrades-core's form.
 */
export function buildInfoOf(names, { folder = PROJECT, optimized = true } = {}) {
  const contents = new Map();
  const optimizer = { ...SETTINGS.optimizer, enabled: optimized };
  const settings = { ...SETTINGS, optimizer, outputSelection: OUTPUTS };
  const named = names.map((name) => [name, { content: readSource(name, folder, contents) }]);
  const { contracts, sources } = compile(
    { language: "Solidity", sources: Object.fromEntries(named), settings },
    { import: importsFrom(folder, contents) },
  );
  const input = { language: "Solidity", sources: sorted(contents), settings };
  return {
    _format: "hh-sol-build-info-1",
    solcVersion: solc.version().split("+")[0],
    solcLongVersion: solc.version().replace(".Emscripten.clang", ""),
    input,
    output: { contracts, sources },
    namespacedOutput: namespacedOutputOf(input, { contracts, sources }),
  };
}

function importsFrom(folder, contents) {
  return (name) => {
    try {
      return { contents: readSource(name, folder, contents) };
    } catch (error) {
      return { error: error.message };
    }
  };
}

function readSource(name, folder, contents) {
  const path = join(name.startsWith("node_modules/") ? PROJECT : folder, name);
  if (!existsSync(path)) throw new CompilationError(`expected a file ${name}, found none`);
  contents.set(name, readFileSync(path, "utf8"));
  return contents.get(name);
}

function sorted(contents) {
  const entries = [...contents].sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, content]) => [name, { content }]));
}

function namespacedOutputOf(input, output) {
  const namespaced = makeNamespacedInput(input, output);
  for (const source of Object.values(namespaced.sources)) {
    // upgrades-core ends the names it makes with a random number; they are unique without.
    source.content = source.content
      .replace(/\$astId_(\d+)_\d+ /g, "$$astId_$1 ")
      .replace(/ (\w+) \$(\w+)_\d+;/g, " $1 $$$2;");
  }
  const { contracts, sources } = compile(namespaced);
  return { contracts, sources };
}

function compile(input, callbacks = {}) {
  const output = JSON.parse(solc.compile(JSON.stringify(input), callbacks));
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) {
    throw new CompilationError(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  }
  return output;
}
