// The page: fields in, a file out. Nothing is kept: the fields are emptied, and the file's URL is taken back.
import { convert, readLine, signedText, walletPassphrase } from "./convert.mjs";

const KEPT_MILLISECONDS = 600_000;
const part = (id) => document.getElementById(id);
let line;
let url;

function tell(text, isError = false) {
  part("told").textContent = text;
  part("told").className = isError ? "error" : "";
}

function forget() {
  for (const id of ["secret", "recipient", "file"]) part(id).value = "";
  line = undefined;
}

function takeBack() {
  if (url !== undefined) URL.revokeObjectURL(url);
  url = undefined;
  part("result").hidden = true;
  part("link").removeAttribute("href");
}

part("file").addEventListener("change", async () => {
  takeBack();
  tell("");
  try {
    line = await readLine(part("file").files[0]);
    const isWallet = line.sealedBy === "wallet";
    part("wallet").hidden = !isWallet;
    part("text").textContent = isWallet ? signedText(line.salt) : "";
    part("secret-name").textContent = isWallet ? "Signature of this text, in hex" : "Passphrase of the file";
  } catch (error) {
    forget();
    tell(error.message, true);
  }
});

part("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  takeBack();
  tell("Opening the file. This takes some seconds.");
  part("convert").disabled = true;
  try {
    if (line === undefined) throw new Error("Choose the backup account file first.");
    const typed = part("secret").value;
    const passphrase = line.sealedBy === "wallet" ? await walletPassphrase(typed, line.salt) : typed;
    const made = await convert(line, passphrase, part("recipient").value.trim());
    url = URL.createObjectURL(made.history);
    part("link").href = url;
    part("result").hidden = false;
    setTimeout(takeBack, KEPT_MILLISECONDS);
    const date = new Date(Number(BigInt(made.createdNs) / 1_000_000n)).toISOString().slice(0, 10);
    tell(`Messages up to ${date}, of inbox ${made.inbox}, by device ${made.installation}.`);
    forget();
  } catch (error) {
    tell(error.message, true);
  } finally {
    part("convert").disabled = false;
  }
});

part("link").addEventListener("click", () => setTimeout(takeBack, 1000));
