// Bundles of packages of npm that the client has in it: built at set-up, and compared with pinned digests.
import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

export function sha256(content) {
  return crypto.createHash("sha256").update(content).digest();
}

export function bundled(entry, options) {
  return build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    bundle: true,
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    // Paths are part of the bundle, as comments: those below the project, wherever node_modules lies.
    preserveSymlinks: true,
    logLevel: "warning",
    ...options,
  });
}

// A package within another one has its own licence.
function packageOf(input) {
  const parts = input.split("/");
  const at = parts.lastIndexOf("node_modules") + 1;
  return parts.slice(0, at + (parts[at].startsWith("@") ? 2 : 1)).join("/");
}

export function notice(name, inputs) {
  const folders = [...new Set(inputs.filter((input) => input.includes("node_modules/")).map(packageOf))].sort();
  const texts = folders.map((folder) => {
    const { name, version } = JSON.parse(fs.readFileSync(path.join(ROOT, folder, "package.json")));
    const license = fs.readdirSync(path.join(ROOT, folder)).find((file) => /^licen[cs]e/i.test(file));
    if (license === undefined) throw new Error(`${name}: expected a licence, found none`);
    return `${name} ${version}\n\n${fs.readFileSync(path.join(ROOT, folder, license), "utf8").trim()}\n`;
  });
  return [`${name} contains these packages.\n`, ...texts].join(`\n${"-".repeat(80)}\n\n`);
}

export function pin(folder, names, source) {
  const pinsPath = `${folder}.sha256`;
  const pins = names.map((name) => `${sha256(fs.readFileSync(path.join(folder, name))).toString("hex")}  ${name}\n`).join("");
  if (process.argv.includes("--pin")) fs.writeFileSync(pinsPath, pins);
  const pinned = fs.existsSync(pinsPath) ? fs.readFileSync(pinsPath, "utf8") : "nothing";
  if (pins !== pinned) {
    console.error(`bundle of ${source}: expected\n${pinned}, got\n${pins}`);
    console.error(`where the packages or ${source} changed on purpose: node ${source}/build.mjs --pin`);
    process.exit(1);
  }
}
