// Starts the headless browser of the npm packages, which unpacks itself once below .cache.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

/** Arguments of the package that switch off rules to which browsers hold pages, such as CORS. */
const LAX = ["--disable-web-security", "--allow-running-insecure-content"];

/** Returns the program. Each process that finds none unpacks its own: nobody starts half of one. */
async function unpacked() {
  const folder = fileURLToPath(new URL("../../.cache/chromium", import.meta.url));
  if (!existsSync(folder)) {
    mkdirSync(dirname(folder), { recursive: true });
    process.env.TMPDIR = mkdtempSync(`${folder}-`);
    await chromium.executablePath();
    try {
      renameSync(process.env.TMPDIR, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
      rmSync(process.env.TMPDIR, { recursive: true });
    }
  }
  process.env.TMPDIR = folder;
  return chromium.executablePath();
}

export async function launch() {
  return puppeteer.launch({
    executablePath: await unpacked(),
    args: [...chromium.args.filter((each) => !LAX.includes(each)), "--no-sandbox"],
    headless: "shell",
  });
}
