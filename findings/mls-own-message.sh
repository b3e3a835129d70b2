#!/usr/bin/env bash
# Guess: the sender of an MLS message can decrypt it when it comes back from the network, as every other member can.
# Seen: neither ts-mls 1.6.4 nor mls-rs (agentvault-mls-rs-uniffi 0.1.1) can: the key is gone once it was used. ts-mls
#   says "Desired gen in the past", as it does for a message that comes a second time.
# Why it matters: a client that reads its own topic fails on each of its own messages. Keep the text at sending, know the
#   message again by the hash of its bytes, and do not take the error for a replay.
. "$(dirname "$0")/lib.sh"
pip_packages agentvault-mls-rs-uniffi==0.1.1
npm_packages ts-mls@1.6.4 @noble/ciphers@2.1.1 @noble/curves@2.0.1

cat >own.mjs <<'E'
import * as mls from "ts-mls";

const suite = "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519";
const implementation = await mls.getCiphersuiteImpl(mls.getCiphersuiteFromName(suite));
const bytes = (text) => new TextEncoder().encode(text);
const make = (name) =>
  mls.generateKeyPackage(
    { credentialType: "basic", identity: bytes(name) }, mls.defaultCapabilities(), mls.defaultLifetime, [], implementation,
  );
const [alice, bob] = [await make("alice"), await make("bob")];
const group = await mls.createGroup(bytes("group"), alice.publicPackage, alice.privatePackage, [], implementation);
const add = { proposalType: "add", add: { keyPackage: bob.publicPackage } };
const commit = await mls.createCommit({ state: group, cipherSuite: implementation }, { extraProposals: [add] });
const member = await mls.joinGroup(
  commit.welcome, bob.publicPackage, bob.privatePackage, mls.emptyPskIndex, implementation, commit.newState.ratchetTree,
);
const sent = await mls.createApplicationMessage(commit.newState, bytes("hello"), implementation);
const read = (state) =>
  mls.processPrivateMessage(state, sent.privateMessage, mls.emptyPskIndex, implementation).then(
    (result) => new TextDecoder().decode(result.message),
    (error) => error.message,
  );
console.log("ts-mls, the other member:", await read(member));
console.log("ts-mls, the sender:", await read(sent.newState));
E
cat >own.py <<'E'
import mls_rs_uniffi as mls


def client(name):
    key = mls.generate_signature_keypair(mls.CipherSuite.CURVE25519_AES128)
    return mls.Client(name, key, mls.client_config_default())


alice, bob = client(b"alice"), client(b"bob")
group = alice.create_group(None)
commit = group.add_members([bob.generate_key_package_message()])
group.process_incoming_message(commit.commit_message)
member = bob.join_group(commit.ratchet_tree, commit.welcome_message).group
sent = group.encrypt_application_message(b"hello")
for name, reader in (("the other member", member), ("the sender", group)):
    try:
        print(f"mls-rs, {name}:", reader.process_incoming_message(sent).data.decode())
    except mls.Error as error:
        print(f"mls-rs, {name}:", str(error))
E
expect bash -c 'node own.mjs; python own.py' <<'E'
ts-mls, the other member: hello
ts-mls, the sender: Desired gen in the past
mls-rs, the other member: hello
mls-rs, the sender: A mls-rs error occurred: message from self can't be processed
E
