// Bundles a program of these tests: bundle.mjs ENTRY OUTFILE [uncorrected]
import { build } from "esbuild";
import { corrections } from "../../client/mls_engine/corrections.mjs";

const [entry, outfile, uncorrected] = process.argv.slice(2);
await build({
  entryPoints: [entry],
  outfile,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  logLevel: "warning",
  plugins: uncorrected ? [] : [corrections],
});
