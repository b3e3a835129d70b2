// Today's browser SDK in a browser, driven as node_sdk.mjs is: JSON commands in, JSON answers out.
//
//   node tests/browser/sdk.mjs
//
// The page runs node_sdk.mjs itself, with the other SDK in the place of Node's.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch } from "./launch.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const installed = (path) => fileURLToPath(new URL(path, import.meta.resolve("@xmtp/browser-sdk")));
const PAGE = '<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>';

/** The scripts by their paths; the SDK starts its worker beside its page. */
async function scripts() {
  const { outputFiles } = await build({
    entryPoints: {
      page: here("../support/network/node_sdk.mjs"),
      "workers/client": installed("./workers/client.js"),
    },
    alias: { "@xmtp/node-sdk": "@xmtp/browser-sdk", "node:readline": here("./page_lines.mjs") },
    define: { "process.stdin": "null", "process.exit": "close" },
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    outdir: "/",
  });
  return new Map(outputFiles.map(({ path, contents }) => [path, contents]));
}

/** Serves the page, and answers with the port. */
async function serve() {
  const served = await scripts();
  const program = readFileSync(
    fileURLToPath(new URL("./bindings_wasm_bg.wasm", import.meta.resolve("@xmtp/wasm-bindings"))),
  );
  const server = createServer(({ url }, answer) => {
    const script = served.get(url) ?? served.get(`${url}.js`);
    if (url === "/") answer.setHeader("content-type", "text/html").end(PAGE);
    else if (url.endsWith(".wasm")) answer.setHeader("content-type", "application/wasm").end(program);
    else if (script) answer.setHeader("content-type", "text/javascript").end(script);
    else answer.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: server.address().port };
}

const { server, port } = await serve();
const browser = await launch();
try {
  const page = await browser.newPage();
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  await page.exposeFunction("nextLine", async () => {
    const { value, done } = await lines.next();
    if (done) end();
    return value ?? null;
  });
  page.on("console", (message) => console.log(message.text()));
  page.on("pageerror", (error) => console.log(String(error)));
  await page.goto(`http://127.0.0.1:${port}/`);
  await ended;
} finally {
  await browser.close();
  server.close();
}
