// Converts a backup account file by its page as a person would, without a network, and says as JSON what
// the page told and asked for. The file that it made is in FOLDER.
//
//   node tests/browser/account_page.mjs PAGE.html ACCOUNT SECRET RECIPIENT FOLDER
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./launch.mjs";

const [file, account, secret, recipient, folder] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const browser = await launch();
try {
  console.log(JSON.stringify(await convert()));
} finally {
  await browser.close();
}

async function convert() {
  const page = await browser.newPage();
  const requests = [];
  const complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  await page.setOfflineMode(true);
  await page.goto(url);
  const [input] = await page.$$("#file");
  await input.uploadFile(account);
  // A file that is none is refused at once, and the field is empty again.
  const isTaken = () => document.getElementById("told").textContent !== "" || document.getElementById("file").files.length === 1;
  await page.waitForFunction(isTaken);
  const asked = await page.$eval("#text", (each) => each.textContent);
  await page.type("#secret", secret);
  await page.type("#recipient", recipient);
  if (await page.$eval("#file", (each) => each.files.length === 1)) await page.click("#convert");
  const isOver = () => !document.getElementById("convert").disabled && document.getElementById("told").textContent !== "";
  await page.waitForFunction(isOver, { timeout: 100_000 });
  const told = await page.$eval("#told", (each) => each.textContent);
  const isMade = await page.$eval("#result", (each) => !each.hidden);
  if (isMade) await saved(page);
  const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie.length]);
  const fields = await page.$$eval("#secret, #recipient, #file", (all) => all.map((each) => each.value));
  const others = requests.filter((each) => each !== url);
  // The network is there again, and the page's own rules still hold.
  await page.setOfflineMode(false);
  const blocked = await page.evaluate(async () => {
    const broken = [];
    document.addEventListener("securitypolicyviolation", (event) => broken.push(event.effectiveDirective));
    await fetch("http://127.0.0.1:9/").catch(() => undefined);
    new Image().src = "http://127.0.0.1:9/x.png";
    await new Promise((resolve) => setTimeout(resolve, 100));
    return broken;
  });
  return { asked, told, isMade, kept, fields, blocked, complaints, others };
}

async function saved(page) {
  await page.click("#link");
  while (!existsSync(join(folder, "past.age"))) await new Promise((resolve) => setTimeout(resolve, 50));
  await page.waitForFunction(() => document.getElementById("result").hidden);
}
