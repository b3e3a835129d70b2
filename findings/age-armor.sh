#!/usr/bin/env bash
# Guess: each library of age opens a file in its text form (`age --armor`) as the `age` tool does, by itself.
# Seen: pyrage 1.4.0 does; the decrypter of age-encryption 0.3.1 (npm) takes the binary form alone and throws "invalid
#   version", as if the file was of a newer age. `armor.decode` has to come first.
# Why it matters: the same backup opens on one device and "is too new" on the other. Look at its first line.
. "$(dirname "$0")/lib.sh"
pip_packages pyrage==1.4.0
npm_packages age-encryption@0.3.1

cat >write.mjs <<'E'
import { writeFileSync } from "node:fs";
import { Decrypter, Encrypter, armor, generateIdentity, identityToRecipient } from "age-encryption";

const identity = await generateIdentity();
const encrypter = new Encrypter();
encrypter.addRecipient(await identityToRecipient(identity));
const text = armor.encode(await encrypter.encrypt("backup"));
writeFileSync("identity", identity);
writeFileSync("backup.age", text);
const decrypter = new Decrypter();
decrypter.addIdentity(identity);
const open = (bytes) => decrypter.decrypt(bytes, "text").catch((error) => error.message.slice(0, 15));
console.log("age-encryption:", await open(new TextEncoder().encode(text)));
console.log("age-encryption, decoded:", await open(armor.decode(text)));
E
cat >read.py <<'E'
import pyrage

with open("identity") as identity, open("backup.age", "rb") as backup:
    print("pyrage:", pyrage.decrypt(backup.read(), [pyrage.x25519.Identity.from_str(identity.read())]).decode())
E
expect bash -c 'node write.mjs; python read.py' <<'E'
age-encryption: invalid version
age-encryption, decoded: backup
pyrage: backup
E
