// Faults of ts-mls 1.6.4, corrected while it is bundled. Each correction names a text that occurs once in
// one file, so that another version of ts-mls fails to build until somebody has looked at it again.
import * as fs from "node:fs";
import * as path from "node:path";

const CORRECTIONS = {
  "clientState.js": [
    // An unmerged leaf lies below its node, and each node between them lists it (RFC 9420 §12.4.3.1).
    // ts-mls wants all nodes above the leaf to have equal lists, and so refuses the welcome of most groups
    // that have both added and removed members.
    ['!== "leaf" && !dp.includes', '!== "leaf" || !dp.includes'],
    ["of dp)", "of dp.slice(0, dp.indexOf(toNodeIndex(i))))"],
    ["!arraysEqual(dpNode.parent.unmergedLeaves, n.parent.unmergedLeaves)", "!dpNode.parent.unmergedLeaves.includes(unmergedLeaf)"],
  ],
  "enumHelpers.js": [
    // No fault, but a third of the time of reading a state: the same table was made for each number.
    [
      "export function reverseMap(obj) {",
      "const made = new WeakMap(); export function reverseMap(obj) { if (!made.has(obj)) made.set(obj, makeReverseMap(obj)); return made.get(obj); } function makeReverseMap(obj) {",
    ],
  ],
  "createCommit.js": [
    // A commit that leaves one member has a path of no nodes, whose secret is new all the same (§12.4.1).
    // ts-mls takes zeros, which the removed member knows: it could read on after the next addition.
    [
      "new Uint8Array(cipherSuite.kdf.size)",
      "(updatePath === undefined ? new Uint8Array(cipherSuite.kdf.size) : cipherSuite.rng.randomBytes(cipherSuite.kdf.size))",
    ],
  ],
};

function corrected(file) {
  let text = fs.readFileSync(file, "utf8");
  for (const [wrong, right] of CORRECTIONS[path.basename(file)]) {
    const found = text.split(wrong).length - 1;
    if (found !== 1) throw new Error(`${file}: expected once what is corrected, found it ${found} times: ${wrong}`);
    text = text.replace(wrong, () => right);
  }
  return text;
}

export const corrections = {
  name: "corrections",
  setup(build) {
    const names = Object.keys(CORRECTIONS).join("|").replaceAll(".", "\\.");
    build.onLoad({ filter: new RegExp(`/ts-mls/dist/src/(util/)?(${names})$`) }, ({ path: file }) => ({
      contents: corrected(file),
      loader: "js",
    }));
  },
};
