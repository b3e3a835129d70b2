// Why a call returns nothing. Each class has the word that opens its answer.

export class Refused extends Error {
  word = "refused";
}

export class EpochAhead extends Refused {
  word = "ahead";
}

// Its message is the sender's leaf: a member wrote the message, for only members know the leaf's key.
export class KeyUsed extends Refused {
  word = "used";
}

export class OwnCommit extends Refused {
  word = "own";
}

export class StateBroken extends Error {
  word = "broken";
}

// ts-mls names its errors, and their texts are constants, except where it passes on another's.
const NAMED = new Set(["ValidationError", "CodecError", "UsageError", "CryptoVerificationError", "InternalError"]);

// Whatever a decoder throws, the stranger's bytes that it decodes are at fault. Texts of errors that are
// neither ours nor ts-mls' may hold what was decrypted, so they stay here.
export function refusal(error) {
  if (error instanceof Refused || error instanceof StateBroken) return error;
  if (error instanceof RangeError && error.message.includes("allocation")) return undefined;
  return new Refused(NAMED.has(error?.name) ? error.message : "bytes that MLS cannot use");
}
