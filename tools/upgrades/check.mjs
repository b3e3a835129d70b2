// Compares the contracts with a release: by upgrades-core, then by our own rules.
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { buildInfoOf, PROJECT } from "./build_info.mjs";
import { UPGRADEABLE } from "./releases.mjs";
import { faultsOf, lineage } from "./rules.mjs";

const require = createRequire(import.meta.url);
const {
  getContractVersion,
  getErrors,
  getStorageLayout,
  getStorageUpgradeReport,
  solcInputOutputDecoder,
  UpgradeableContractErrorReport,
  validate,
  withValidationDefaults,
} = require("@openzeppelin/upgrades-core");
const { LayoutCompatibilityReport } = require("@openzeppelin/upgrades-core/dist/storage/report");

// Where the successors that the tests upgrade to are, among other contracts.
const SUCCESSORS = "tests/solidity";
const OPTIONS = withValidationDefaults({ kind: "uups" });

/**
 * Compare the contracts below `folder`, and the successors in tests/solidity, with a release.
 *
 * @returns one entry per contract that could stand behind a proxy: its name, the released contract
 * that it would replace, and its faults (kind, place, text).
 */
export function upgradesFrom(release, folder = PROJECT) {
  const current = buildInfoOf(sourcesToCompare(folder), { folder, optimized: false });
  const [before, after] = [release.buildInfo, current].map(validationOf);
  const upgrades = upgradesIn(current.output).map(({ contract, reference }) => ({
    contract,
    reference,
    faults: faultsBetween({ before, after, contract, reference, output: current.output }),
  }));
  return [...upgrades, ...missing(upgrades)];
}

function missing(upgrades) {
  const gone = UPGRADEABLE.filter((name) => upgrades.every(({ contract }) => contract !== name));
  const text = "a released contract: expected in the sources and not abstract, found none";
  return gone.map((name) => ({
    contract: name,
    reference: name,
    faults: [{ kind: "missing-contract", place: name.split(":")[0], text }],
  }));
}

function sourcesToCompare(folder) {
  const names = existsSync(join(folder, SUCCESSORS)) ? readdirSync(join(folder, SUCCESSORS)) : [];
  const sources = names.filter((name) => name.endsWith(".sol")).sort();
  return [
    ...UPGRADEABLE.map((contract) => contract.split(":")[0]),
    ...sources.map((name) => `${SUCCESSORS}/${name}`),
  ];
}

function validationOf({ input, output, namespacedOutput, solcVersion }) {
  const decoder = solcInputOutputDecoder(input, output);
  return validate(output, decoder, solcVersion, input, namespacedOutput);
}

// A released contract itself, and whatever inherits from it and can be deployed.
function upgradesIn(output) {
  const upgrades = [];
  for (const [source, contracts] of Object.entries(output.contracts)) {
    for (const [name, { evm }] of Object.entries(contracts)) {
      if (evm.bytecode.object === "") continue;
      const contract = `${source}:${name}`;
      const ancestors = lineage(contract, output).map(
        ({ source: file, definition }) => `${file}:${definition.name}`,
      );
      const reference = ancestors.find((ancestor) => UPGRADEABLE.includes(ancestor));
      if (reference !== undefined) upgrades.push({ contract, reference });
    }
  }
  return upgrades;
}

function faultsBetween({ before, after, contract, reference, output }) {
  const version = getContractVersion(after, contract);
  const layout = getStorageLayout(after, version);
  const released = getStorageLayout(before, getContractVersion(before, reference));
  return [
    ...getErrors(after, version, OPTIONS).map(unsafeCode),
    ...getStorageUpgradeReport(released, layout, OPTIONS).ops.map(incompatibleStorage),
    ...faultsOf(contract, output, layout),
  ];
}

function unsafeCode(error) {
  const [place, text] = explained(new UpgradeableContractErrorReport([error]));
  return { kind: error.kind, place, text };
}

function incompatibleStorage(operation) {
  const [place, text] = explained(new LayoutCompatibilityReport([operation]));
  return { kind: operation.kind, place, text };
}

// upgrades-core writes "file.sol:12: what is wrong", and below it hints with a sign and a link.
function explained(report) {
  const [place, ...lines] = report.explain(false).split(/: |\n/);
  const sentences = lines.map((line) => line.trim().replace(/^[>-] /, ""));
  return [place, sentences.filter((line) => line !== "" && !line.startsWith("https:")).join("; ")];
}
