#!/usr/bin/env bash
# Guess: a keystore of version 3 that ethers writes has the field `crypto`, as those of geth and eth-account.
# Seen: ethers 6.17.0 writes `Crypto`, with a capital; eth-account 0.13.7 writes `crypto`, and opens both.
# Why it matters: a reader that looks for `crypto` takes such a file for another format. Lower the names first.
. "$(dirname "$0")/lib.sh"
pip_packages eth-account==0.13.7
npm_packages ethers@6.17.0

cat >write.mjs <<'E'
import { writeFileSync } from "node:fs";
import { encryptKeystoreJsonSync } from "ethers";

const account = { address: "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1", privateKey: "0x" + "01".repeat(32) };
writeFileSync("ethers.json", encryptKeystoreJsonSync(account, "password", { scrypt: { N: 1024 } }));
E
cat >read.py <<'E'
import json

from eth_account import Account

theirs = json.load(open("ethers.json"))
ours = Account.encrypt(b"\1" * 32, "password", kdf="scrypt", iterations=1024)
print("ethers", sorted(theirs))
print("eth-account", sorted(ours))
print("opened", Account.decrypt(theirs, "password") == b"\1" * 32)
E
expect bash -c 'node write.mjs; python read.py' <<'E'
ethers ['Crypto', 'address', 'id', 'version']
eth-account ['address', 'crypto', 'id', 'version']
opened True
E
