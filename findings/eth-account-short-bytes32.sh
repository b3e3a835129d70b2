#!/usr/bin/env bash
# Guess: wallets refuse EIP-712 data in which a bytes32 has fewer than 32 bytes.
# Seen: eth-account 0.13.7 fills it up with zeros on the right, without a word, and signs that. ethers 6.17.0 throws.
# Why it matters: a shortened hash or group id becomes another one, with a valid signature. Compare lengths before you
#   sign; and where ids of 16 bytes are padded, say on which side.
. "$(dirname "$0")/lib.sh"
pip_packages eth-account==0.13.7
npm_packages ethers@6.17.0

cat >digest.py <<'E'
from eth_account.messages import encode_typed_data


def digest(value):
    return encode_typed_data({"name": "finding"}, {"Vote": [{"name": "hash", "type": "bytes32"}]}, {"hash": value}).body


print("eth-account pads:", digest("0x1234") == digest("0x1234" + "00" * 30))
E
cat >digest.mjs <<'E'
import { TypedDataEncoder } from "ethers";

try {
  TypedDataEncoder.hash({ name: "finding" }, { Vote: [{ name: "hash", type: "bytes32" }] }, { hash: "0x1234" });
} catch (error) {
  console.log("ethers:", error.shortMessage);
}
E
expect bash -c 'python digest.py; node digest.mjs' <<'E'
eth-account pads: True
ethers: invalid length for bytes32
E
