// Opens a backup account file, and encrypts its messages again, for the key of another device. The form of
// the file is that of chainkit_client/accounts/account_file.py.
import { Decrypter, Encrypter } from "age-encryption";

const FORMAT = "chainkit backup account";
const VERSION = 1;
const MOST_LINE_BYTES = 1 << 20;
const SALT_LENGTH = 16;
const SCALARS = 64;
const CONTEXT = "chainkit backup account file: wallet, version 1";
const NEWLINE = 10;

/** Returns a file's first line, and where its messages begin. */
export async function readLine(file) {
  const start = new Uint8Array(await file.slice(0, MOST_LINE_BYTES).arrayBuffer());
  const end = start.indexOf(NEWLINE);
  if (end < 0) throw new Error("This is no backup account file, or a part of one.");
  const line = parsed(start.subarray(0, end));
  if (line.format !== FORMAT || line.version !== VERSION) throw new Error("This is no backup account file of version 1.");
  if (line.sealed_by !== "passphrase" && line.sealed_by !== "wallet") throw new Error("This file opens in another way.");
  const salt = fromHex(line.salt);
  if (salt.length !== SALT_LENGTH) throw new Error("This is no backup account file.");
  return { sealedBy: line.sealed_by, salt, sealed: fromBase64(line.sealed), past: file.slice(end + 1) };
}

/** Returns the text that a wallet signs, as chainkit_client/accounts/passphrases.py. */
export function signedText(salt) {
  return (
    "Open a chainkit backup account file\n\n" +
    `File: ${toHex(salt)}\n\n` +
    "This signature and the file together open all messages of this account. Sign only in a " +
    "program that you started yourself to make or to restore this file."
  );
}

/** Returns the passphrase that a wallet's signature of that text gives. */
export async function walletPassphrase(signature, salt) {
  const bytes = fromHex(signature);
  if (bytes.length !== SCALARS + 1) throw new Error("A signature has 65 bytes in hex.");
  const key = await crypto.subtle.importKey("raw", bytes.subarray(0, SCALARS), "HKDF", false, ["deriveBits"]);
  const info = new TextEncoder().encode(CONTEXT);
  return toHex(new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, 256)));
}

/** Returns a history file that the recipient's key opens, and whose it is. */
export async function convert(line, passphrase, recipient) {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  const account = await opened(line.sealed, passphrase);
  if (account.history_key === null) throw new Error("This file has no messages: restore it by the command.");
  const decrypter = new Decrypter();
  decrypter.addIdentity(account.history_key);
  const lines = await decrypter.decrypt(line.past.stream());
  const history = await new Response(await encrypter.encrypt(lines)).blob();
  return { history, inbox: account.inbox, installation: account.installation, createdNs: account.created_ns };
}

async function opened(sealed, passphrase) {
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    return parsed(await decrypter.decrypt(sealed));
  } catch {
    throw new Error("It does not open: another passphrase or wallet, or a file that was cut or altered.");
  }
}

function parsed(bytes) {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
}

function fromHex(text) {
  const digits = String(text).trim().replace(/^0x/, "");
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new Error("This is no hex.");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function toHex(bytes) {
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}
