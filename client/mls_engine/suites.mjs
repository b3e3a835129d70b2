// The two cipher suites of X25519 and Ed25519 (RFC 9420 §17.1). Hashes, signatures and the encryption
// of messages are Node's own, called directly: WebCrypto hands each call to another thread, and a
// message takes a dozen of them.
import * as crypto from "node:crypto";
import { Chacha20Poly1305 } from "@hpke/chacha20poly1305";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { makeGenericHpke } from "ts-mls/crypto/implementation/hpke.js";
import { Refused } from "./refusals.mjs";

const HASH_LENGTH = 32;
const TAG_LENGTH = 16;
const ED25519_PRIVATE = Buffer.from("302e020100300506032b657004220420", "hex");
const ED25519_PUBLIC = Buffer.from("302a300506032b6570032100", "hex");

function hmac(key, data) {
  return crypto.createHmac("sha256", key).update(data).digest();
}

const hash = {
  digest: async (data) => bytes(crypto.createHash("sha256").update(data).digest()),
  mac: async (key, data) => bytes(hmac(key, data)),
  verifyMac: async (key, mac, data) => mac.length === HASH_LENGTH && crypto.timingSafeEqual(mac, hmac(key, data)),
};

const kdf = {
  size: HASH_LENGTH,
  extract: async (salt, material) => bytes(hmac(salt, material)),
  // HKDF-Expand (RFC 5869 §2.3): Node offers it only together with HKDF-Extract.
  async expand(key, info, length) {
    const blocks = [];
    let block = Buffer.alloc(0);
    for (let count = 1; blocks.length * HASH_LENGTH < length; count += 1) {
      block = crypto.createHmac("sha256", key).update(block).update(info).update(Buffer.of(count)).digest();
      blocks.push(block);
    }
    return bytes(Buffer.concat(blocks).subarray(0, length));
  },
};

const signature = {
  async sign(seed, message) {
    const key = crypto.createPrivateKey({ key: Buffer.concat([ED25519_PRIVATE, seed]), format: "der", type: "pkcs8" });
    return bytes(crypto.sign(null, message, key));
  },
  async verify(publicKey, message, signed) {
    if (publicKey.length !== 32) return false;
    const key = crypto.createPublicKey({ key: Buffer.concat([ED25519_PUBLIC, publicKey]), format: "der", type: "spki" });
    return crypto.verify(null, message, key, signed);
  },
};

function aead(algorithm) {
  return {
    async encrypt(key, nonce, associated, plaintext) {
      const cipher = crypto.createCipheriv(algorithm, key, nonce, { authTagLength: TAG_LENGTH });
      cipher.setAAD(associated, { plaintextLength: plaintext.length });
      return bytes(Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]));
    },
    async decrypt(key, nonce, associated, ciphertext) {
      const end = ciphertext.length - TAG_LENGTH;
      const decipher = crypto.createDecipheriv(algorithm, key, nonce, { authTagLength: TAG_LENGTH });
      decipher.setAAD(associated, { plaintextLength: end });
      decipher.setAuthTag(ciphertext.subarray(end));
      return bytes(Buffer.concat([decipher.update(ciphertext.subarray(0, end)), decipher.final()]));
    },
  };
}

// ts-mls compares and slices Uint8Arrays; a Buffer's slice would share its memory.
function bytes(buffer) {
  return new Uint8Array(buffer);
}

async function suite(name, algorithm, hpkeAead) {
  const base = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: hpkeAead });
  const hpke = await makeGenericHpke({ kem: "DHKEM-X25519-HKDF-SHA256" }, aead(algorithm), base);
  const rng = { randomBytes: (count) => bytes(crypto.randomBytes(count)) };
  return { name, hash, kdf, signature, hpke, rng };
}

export const SUITE_NAMES = {
  1: "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519",
  3: "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519",
};

const SUITES = new Map([
  [SUITE_NAMES[1], await suite(SUITE_NAMES[1], "aes-128-gcm", new Aes128Gcm())],
  [SUITE_NAMES[3], await suite(SUITE_NAMES[3], "chacha20-poly1305", new Chacha20Poly1305())],
]);

export function suiteNamed(name) {
  const found = SUITES.get(name);
  if (found === undefined) throw new Refused("expected cipher suite 1 or 3");
  return found;
}
