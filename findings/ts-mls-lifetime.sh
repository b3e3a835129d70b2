#!/usr/bin/env bash
# Guess: a key package that an MLS library makes by its default lifetime expires after some weeks or months.
# Seen: `defaultLifetime` of ts-mls 1.6.4 runs from 1970 to 2^63 - 1 seconds; mls-rs (agentvault-mls-rs-uniffi 0.1.1) adds
#   such a member. RFC 9420 leaves the longest lifetime to the application.
# Why it matters: a device that was lost years ago can still be added. Hand in a lifetime where you make key packages, and
#   bound the one of those that you take.
. "$(dirname "$0")/lib.sh"
pip_packages agentvault-mls-rs-uniffi==0.1.1
npm_packages ts-mls@1.6.4 @noble/ciphers@2.1.1 @noble/curves@2.0.1

cat >make.mjs <<'E'
import { writeFileSync } from "node:fs";
import * as mls from "ts-mls";

const suite = "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519";
const implementation = await mls.getCiphersuiteImpl(mls.getCiphersuiteFromName(suite));
const credential = { credentialType: "basic", identity: new TextEncoder().encode("bob") };
const { publicPackage } = await mls.generateKeyPackage(
  credential, mls.defaultCapabilities(), mls.defaultLifetime, [], implementation,
);
console.log("ts-mls", publicPackage.leafNode.lifetime);
const message = { version: "mls10", wireformat: "mls_key_package", keyPackage: publicPackage };
writeFileSync("key-package", mls.encodeMlsMessage(message));
E
cat >add.py <<'E'
import mls_rs_uniffi as mls

key = mls.generate_signature_keypair(mls.CipherSuite.CURVE25519_AES128)
group = mls.Client(b"alice", key, mls.client_config_default()).create_group(None)
with open("key-package", "rb") as file:
    commit = group.add_members([mls.Message.from_bytes(file.read())])
print("mls-rs adds it:", commit.welcome_message is not None)
E
expect bash -c 'node make.mjs; python add.py' <<'E'
ts-mls { notBefore: 0n, notAfter: 9223372036854775807n }
mls-rs adds it: True
E
