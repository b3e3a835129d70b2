// The rules for an upgrade that upgrades-core does not check: it trusts the annotations that
// allow our constructors, and that a namespace's struct lies where its annotation says.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { findAll } = require("solidity-ast/utils");
const { calculateERC7201StorageLocation: slotOf } = require(
  "@openzeppelin/upgrades-core/dist/utils/erc7201",
);

const NAMESPACE = /@custom:storage-location erc7201:(\S+)/;

/**
 * The faults of one contract, each with its kind, its place and what is wrong.
 *
 * @param contract the fully qualified name.
 * @param output the compiler's output with its ASTs.
 * @param layout the contract's storage layout, as upgrades-core extracts it.
 */
export function faultsOf(contract, output, layout) {
  const definitions = lineage(contract, output);
  return [
    ...storageOutsideNamespaces(layout),
    ...definitions.flatMap(misplacedNamespaces),
    ...initializableImplementation(contract, definitions),
  ];
}

/** The definitions of a contract and its bases, the most derived first. */
export function lineage(contract, output) {
  const definitions = new Map();
  for (const [source, { ast }] of Object.entries(output.sources)) {
    for (const definition of findAll("ContractDefinition", ast)) {
      definitions.set(definition.id, { source, definition });
    }
  }
  const [source, name] = contract.split(":");
  const own = [...definitions.values()].find(
    (entry) => entry.source === source && entry.definition.name === name,
  );
  return own.definition.linearizedBaseContracts.map((id) => definitions.get(id));
}

// A variable in the sequential layout moves when a base gains one; in a namespace none moves.
function storageOutsideNamespaces(layout) {
  return layout.storage.map(({ label, src }) => ({
    kind: "storage-outside-namespace",
    place: src,
    text: `variable ${label}: expected in a struct with an ERC-7201 namespace, got plain storage`,
  }));
}

function misplacedNamespaces({ source, definition }) {
  const faults = [];
  const slots = [...findAll("VariableDeclaration", definition)]
    .filter(({ constant, value }) => constant && value?.nodeType === "Literal")
    .map(({ value }) => value.value);
  for (const struct of findAll("StructDefinition", definition)) {
    const namespace = NAMESPACE.exec(struct.documentation?.text ?? "")?.[1];
    if (namespace === undefined) continue;
    const slot = slotOf(namespace);
    if (slots.includes(slot)) continue;
    const text = `namespace ${namespace}: expected a constant ${slot}, found none`;
    faults.push({ kind: "namespace-slot", place: `${source}:${definition.name}`, text });
  }
  return faults;
}

function initializableImplementation(contract, definitions) {
  const constructors = definitions.flatMap(({ definition }) =>
    [...findAll("FunctionDefinition", definition)].filter(({ kind }) => kind === "constructor"),
  );
  const disables = constructors.some((constructor) =>
    (constructor.body?.statements ?? []).some(
      ({ expression }) => expression?.expression?.name === "_disableInitializers",
    ),
  );
  if (disables) return [];
  return [
    {
      kind: "initializers-enabled",
      place: contract,
      text: "constructors: expected a call of _disableInitializers, found none",
    },
  ];
}
