// A keystore as ethers writes it, which names `Crypto` with a capital.
import { computeAddress, encryptKeystoreJsonSync } from "ethers";

import { COMMENT, testBytes, testKey } from "./primitives.mjs";

export function keystoreVectors() {
  const { privateKey, publicKey } = testKey("keystore");
  const account = { address: computeAddress(publicKey), privateKey };
  const password = "correct horse";
  const keystore = encryptKeystoreJsonSync(account, password, {
    scrypt: { N: 2, r: 8, p: 1 },
    salt: testBytes("salt", 32),
    iv: testBytes("iv", 16),
    uuid: testBytes("uuid", 16),
  });
  return {
    comment: `Keystores by ethers, with few rounds. ${COMMENT}`,
    password,
    address: account.address,
    keystore: JSON.parse(keystore),
  };
}
