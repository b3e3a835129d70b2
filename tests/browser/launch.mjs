// Starts the headless browser of the npm packages, which unpacks itself once below .cache.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

/** Arguments of the package that switch off rules to which browsers hold pages, such as CORS. */
const LAX = ["--disable-web-security", "--allow-running-insecure-content"];

export async function launch() {
  process.env.TMPDIR = fileURLToPath(new URL("../../.cache/chromium", import.meta.url));
  mkdirSync(process.env.TMPDIR, { recursive: true });
  return puppeteer.launch({
    executablePath: await chromium.executablePath(),
    args: [...chromium.args.filter((each) => !LAX.includes(each)), "--no-sandbox"],
    headless: "shell",
  });
}
