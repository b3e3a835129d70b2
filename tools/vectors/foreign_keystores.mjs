// Writes keystores by the tools of others, each with a key that is thrown away and few rounds:
//
//   cd FOLDER
//   npm install web3@4.16.0 @ethereumjs/wallet@10.0.0 ethereumjs-wallet@1.0.2 keythereum@2.0.0 \
//     @foundry-rs/cast-linux-amd64@1.7.1
//   node tools/vectors/foreign_keystores.mjs FOLDER > tests/vectors/foreign_keystores.json
//
// with geth (make test-chains builds it) and the project's Python on the PATH. Salts are random, so
// each run writes other files.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { argv } from "node:process";

const folder = resolve(argv[2]);
const require = createRequire(join(folder, "x.mjs"));
const secret = Buffer.from(Array.from({ length: 32 }, (_, index) => index + 1));
const password = "correct horse";
const pbkdf2 = { kdf: "pbkdf2", c: 1000 };
const scrypt = { kdf: "scrypt", n: 1024, r: 8, p: 1 };

const modules = join(folder, "node_modules");
const versionOf = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"))).version;

function written(make) {
  const made = mkdtempSync(join(tmpdir(), "keystores-"));
  make(made);
  const [name] = readdirSync(made).filter((each) => !each.startsWith("given-"));
  return JSON.parse(readFileSync(join(made, name), "utf8"));
}

function byGeth(made) {
  const [key, typed] = [join(made, "given-key"), join(made, "given-password")];
  writeFileSync(key, secret.toString("hex"));
  writeFileSync(typed, `${password}\n`);
  execFileSync("geth", [
    ...["--verbosity", "0", "account", "import", "--keystore", made, "--lightkdf"],
    ...["--password", typed, key],
  ]);
}

function byCast(made) {
  const cast = join(modules, "@foundry-rs/cast-linux-amd64/bin/cast");
  const given = ["--private-key", `0x${secret.toString("hex")}`, "--unsafe-password", password];
  execFileSync(cast, ["wallet", "import", "key", "--keystore-dir", made, ...given]);
}

const python = `
import json, sys
from importlib.metadata import version
from eth_account import Account
made = Account.encrypt(bytes(range(1, 33)), sys.argv[1], kdf="scrypt", iterations=1024)
print(json.dumps([version("eth-account"), made]))
`;

const { Web3 } = require("web3");
const { Wallet } = require("@ethereumjs/wallet");
const { default: OldWallet } = require("ethereumjs-wallet");
const keythereum = require("keythereum");
const { accounts } = new Web3().eth;
const [accountVersion, byAccount] = JSON.parse(
  execFileSync("python", ["-c", python, password], { encoding: "utf8" }),
);
const [, gethVersion] = /Version: ([\d.]+)/.exec(
  execFileSync("geth", ["version"], { encoding: "utf8" }),
);
const kdfparams = { c: pbkdf2.c, dklen: 32, prf: "hmac-sha256" };
const options = { kdf: pbkdf2.kdf, cipher: "aes-128-ctr", kdfparams };
const random = keythereum.create();

const keystores = [
  ["web3", versionOf("web3"), await accounts.encrypt(secret, password, scrypt)],
  ["web3", versionOf("web3"), await accounts.encrypt(secret, password, pbkdf2)],
  [
    "@ethereumjs/wallet",
    versionOf("@ethereumjs/wallet"),
    await Wallet.fromPrivateKey(secret).toV3(password, scrypt),
  ],
  [
    "ethereumjs-wallet",
    versionOf("ethereumjs-wallet"),
    await OldWallet.fromPrivateKey(secret).toV3(password, pbkdf2),
  ],
  [
    "keythereum",
    versionOf("keythereum"),
    keythereum.dump(password, secret, random.salt, random.iv, options),
  ],
  ["eth-account", accountVersion, byAccount],
  ["geth", gethVersion, written(byGeth)],
  ["cast", versionOf("@foundry-rs/cast-linux-amd64"), written(byCast)],
].map(([tool, version, keystore]) => {
  const name = `${tool} ${keystore.crypto.kdf}`;
  return { name, tool, version, keystore };
});

const source = "each tool at its version, by tools/vectors/foreign_keystores.mjs";
const address = (await accounts.decrypt(keystores[0].keystore, password)).address;
console.log(JSON.stringify({ source, password, address, keystores }, null, 2));
