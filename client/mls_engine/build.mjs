// Bundles the child process of the MLS engine into one file inside the package, with the licences of
// what is in it, and compares both with their pinned digests.
//
//   node client/mls_engine/build.mjs          # build; exit with 1 where a digest is not the pinned one
//   node client/mls_engine/build.mjs --pin    # build, and pin what was built
import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { corrections } from "./corrections.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const MLS = path.join(ROOT, "client/chainkit_client/mls");
const BUNDLE = path.join(MLS, "bundle");
const PINS = path.join(MLS, "bundle.sha256");
const NAMES = ["engine.mjs", "NOTICE.txt"];

const built = await build({
  absWorkingDir: ROOT,
  entryPoints: ["client/mls_engine/main.mjs"],
  outfile: path.join(BUNDLE, NAMES[0]),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  // Paths are part of the bundle, as comments: those below the project, wherever node_modules lies.
  preserveSymlinks: true,
  logLevel: "warning",
  plugins: [corrections],
});

function packageOf(input) {
  const parts = input.split("/");
  const at = parts.lastIndexOf("node_modules") + 1;
  return parts.slice(0, at + (parts[at].startsWith("@") ? 2 : 1)).join("/");
}

function notice(inputs) {
  const folders = [...new Set(inputs.filter((input) => input.includes("node_modules/")).map(packageOf))].sort();
  const texts = folders.map((folder) => {
    const { name, version } = JSON.parse(fs.readFileSync(path.join(ROOT, folder, "package.json")));
    const license = fs.readdirSync(path.join(ROOT, folder)).find((file) => /^licen[cs]e/i.test(file));
    if (license === undefined) throw new Error(`${name}: expected a licence, found none`);
    return `${name} ${version}\n\n${fs.readFileSync(path.join(ROOT, folder, license), "utf8").trim()}\n`;
  });
  return ["engine.mjs contains these packages.\n", ...texts].join(`\n${"-".repeat(80)}\n\n`);
}

fs.writeFileSync(path.join(BUNDLE, NAMES[1]), notice(Object.keys(built.metafile.inputs)));
const pins = NAMES.map((name) => {
  const digest = crypto.createHash("sha256").update(fs.readFileSync(path.join(BUNDLE, name))).digest("hex");
  return `${digest}  ${name}\n`;
}).join("");
if (process.argv.includes("--pin")) fs.writeFileSync(PINS, pins);
const pinned = fs.existsSync(PINS) ? fs.readFileSync(PINS, "utf8") : "nothing";
if (pins !== pinned) {
  console.error(`bundle of the MLS engine: expected\n${pinned}, got\n${pins}`);
  console.error("where the packages or client/mls_engine changed on purpose: node client/mls_engine/build.mjs --pin");
  process.exit(1);
}
