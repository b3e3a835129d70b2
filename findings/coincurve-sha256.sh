#!/usr/bin/env bash
# Guess: coincurve's `sign_recoverable(digest)` signs the 32 bytes that it is given.
# Seen: coincurve 21.0.0 hashes them by SHA-256 first; `hasher=None` signs them as they are. Both signatures are valid,
#   and recover to different keys where the digest is looked at.
# Why it matters: a keccak digest signed so belongs to a stranger's address on the chain, and no call fails.
. "$(dirname "$0")/lib.sh"
pip_packages coincurve==21.0.0

cat >sign.py <<'E'
from hashlib import sha256

from coincurve import PrivateKey, PublicKey

key, digest = PrivateKey(b"\1" * 32), b"\2" * 32


def signer(signature, signed):
    return PublicKey.from_signature_and_message(signature, signed, hasher=None) == key.public_key


print("default, of the digest:", signer(key.sign_recoverable(digest), digest))
print("default, of its SHA-256:", signer(key.sign_recoverable(digest), sha256(digest).digest()))
print("hasher=None, of the digest:", signer(key.sign_recoverable(digest, hasher=None), digest))
E
expect python sign.py <<'E'
default, of the digest: False
default, of its SHA-256: True
hasher=None, of the digest: True
E
