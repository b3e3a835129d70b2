#!/usr/bin/env node
// The Solidity compiler for Ape, py-solc-x and forge: the JavaScript build from
// package-lock.json behind the two calls that those tools make of a `solc` binary.
// The `solcjs` command itself reads standard input synchronously and fails on a pipe (EAGAIN).
"use strict";
const path = require("path");
const solc = require("solc");

const PROJECT = path.resolve(__dirname, "..");

function readImport(name) {
  const fs = require("fs");
  for (const candidate of [path.join(PROJECT, name), path.join(PROJECT, "node_modules", name)]) {
    if (fs.existsSync(candidate)) return { contents: fs.readFileSync(candidate, "utf8") };
  }
  return { error: `import ${name}: expected a file below the project or node_modules, found none` };
}

function compileStandardInput() {
  const chunks = [];
  process.stdin.on("data", (chunk) => chunks.push(chunk));
  process.stdin.on("end", () => {
    process.stdout.write(solc.compile(Buffer.concat(chunks).toString("utf8"), { import: readImport }));
  });
}

const args = process.argv.slice(2);
if (args.includes("--version")) {
  const version = solc.version().replace(".Emscripten.clang", ".Linux.g++");
  process.stdout.write(`solc, the solidity compiler commandline interface\nVersion: ${version}\n`);
} else if (args.includes("--standard-json")) {
  compileStandardInput();
} else {
  process.stderr.write(`solc.js: expected --version or --standard-json, got ${args.join(" ")}\n`);
  process.exitCode = 2;
}
