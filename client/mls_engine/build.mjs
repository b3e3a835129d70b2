// Bundles the child process of the MLS engine into one file inside the package, with the licences of
// what is in it, and compares both with their pinned digests.
//
//   node client/mls_engine/build.mjs          # build; exit with 1 where a digest is not the pinned one
//   node client/mls_engine/build.mjs --pin    # build, and pin what was built
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, bundled, notice, pin } from "../bundling.mjs";
import { corrections } from "./corrections.mjs";

const BUNDLE = path.join(ROOT, "client/chainkit_client/mls/bundle");
const NAMES = ["engine.mjs", "NOTICE.txt"];

const built = await bundled("client/mls_engine/main.mjs", {
  outfile: path.join(BUNDLE, NAMES[0]),
  platform: "node",
  format: "esm",
  target: "node22",
  plugins: [corrections],
});
fs.writeFileSync(path.join(BUNDLE, NAMES[1]), notice(NAMES[0], Object.keys(built.metafile.inputs)));
pin(BUNDLE, NAMES, "client/mls_engine");
