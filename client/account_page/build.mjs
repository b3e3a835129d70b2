// Writes the page that converts a backup account file: one file with its script, which may ask nobody, and
// the licences of what is in it. Compares both with their pinned digests.
//
//   node client/account_page/build.mjs          # build; exit with 1 where a digest is not the pinned one
//   node client/account_page/build.mjs --pin    # build, and pin what was built
import * as fs from "node:fs";
import * as path from "node:path";
import { ROOT, bundled, notice, pin, sha256 } from "../bundling.mjs";

const ACCOUNTS = path.join(ROOT, "client/chainkit_client/accounts");
const BUNDLE = path.join(ACCOUNTS, "bundle");
const PAGE = "convert.html";
const NOTICE = "NOTICE.txt";

const built = await bundled("client/account_page/main.mjs", { platform: "browser", format: "iife", minify: true, write: false });
// The end of a script's element would end it within a text of the script as well.
const script = built.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
const template = fs.readFileSync(path.join(ROOT, "client/account_page/page.html"), "utf8");
const style = /<style>([^]*?)<\/style>/.exec(template)[1];
const policy = [
  "default-src 'none'",
  `script-src 'sha256-${sha256(script).toString("base64")}'`,
  `style-src 'sha256-${sha256(style).toString("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
fs.mkdirSync(BUNDLE, { recursive: true });
fs.writeFileSync(path.join(BUNDLE, PAGE), template.replace("POLICY", () => policy).replace("SCRIPT", () => script));
fs.writeFileSync(path.join(BUNDLE, NOTICE), notice(PAGE, Object.keys(built.metafile.inputs)));
pin(BUNDLE, [PAGE, NOTICE], "client/account_page");
