// Opens a page as a reader would, offline and without scripts, and says as JSON what is to be seen.
//
//   node tests/browser/look.mjs PAGE.html PRINTED.pdf
import { pathToFileURL } from "node:url";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const WIDTHS = [1280, 390];

const [file, printed] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: [...chromium.args, "--no-sandbox"],
  headless: "shell",
});
try {
  console.log(JSON.stringify(await look(pathToFileURL(file).href)));
} finally {
  await browser.close();
}

async function look(url) {
  const page = await browser.newPage();
  const requests = [];
  const complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  await page.setOfflineMode(true);
  await page.setJavaScriptEnabled(false);
  await page.goto(url, { waitUntil: "networkidle0" });
  const overflow = {};
  for (const width of WIDTHS) {
    await page.setViewport({ width, height: 900 });
    overflow[width] = await page.evaluate(findOverflow);
  }
  await page.setViewport({ width: WIDTHS[0], height: 900 });
  const seen = {
    headings: await page.evaluate(findVisibleHeadings),
    plots: await page.evaluate(measurePlots),
    opened: await openEvidence(page),
  };
  await page.pdf({ path: printed, format: "A4", outline: true, tagged: true });
  const expected = new Set([url]);
  return {
    ...seen,
    overflow,
    complaints,
    requests: requests.filter((request) => !expected.has(request.split("#")[0])),
  };
}

/** What follows runs in the page. */
function findVisibleHeadings() {
  return [...document.querySelectorAll("h1, h2")]
    .filter((heading) => heading.checkVisibility() && heading.getBoundingClientRect().height > 0)
    .map((heading) => heading.textContent);
}

function measurePlots() {
  return [...document.querySelectorAll("figure svg")].map((plot) => {
    const frame = plot.getBoundingClientRect();
    const cut = [...plot.querySelectorAll("text")].filter((text) => {
      const box = text.getBoundingClientRect();
      const isInside = box.left >= frame.left - 1 && box.right <= frame.right + 1;
      return !isInside || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    });
    return {
      label: plot.getAttribute("aria-label"),
      width: frame.width,
      height: frame.height,
      cut: cut.map((text) => text.textContent),
    };
  });
}

/** Texts that stick out of the page, or out of a box that does not scroll. */
function findOverflow() {
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const edge = (element) => {
    for (let box = element.parentElement; box !== null; box = box.parentElement) {
      if (scrolls(box)) return Infinity;
    }
    return width;
  };
  const outside = [...document.body.querySelectorAll("*")].filter((element) => {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!(hasText || scrolls(element)) || !element.checkVisibility()) return false;
    const range = document.createRange();
    range.selectNodeContents(element);
    const right = scrolls(element)
      ? element.getBoundingClientRect().right
      : range.getBoundingClientRect().right;
    return right > edge(element) + 1;
  });
  const page = document.documentElement.scrollWidth > width ? ["the page itself"] : [];
  return [...page, ...outside.map((element) => element.textContent.trim().slice(0, 80))];
}

/** Follows the first number of the matrix to its evidence and opens it; null if there is none. */
async function openEvidence(page) {
  const link = await page.$(".matrix a");
  if (link === null) return null;
  await link.click();
  const target = await link.evaluate((element) => element.getAttribute("href").slice(1));
  const group = await page.$(`details.group:has([id="${target}"])`);
  const isVisible = (element) => element.checkVisibility({ contentVisibilityAuto: true });
  const evidence = await group.$(".finding dl");
  const before = await evidence.evaluate(isVisible);
  await (await group.$(".finding > summary")).click();
  return {
    target,
    group: await (await group.$("p")).evaluate(isVisible),
    before,
    after: await evidence.evaluate(isVisible),
    text: await evidence.evaluate((element) => element.innerText),
  };
}
