// Keeps a live page open in a browser, and does what its input says, a line of JSON at a time.
//
//   node tests/browser/watch.mjs URL
//
// Each line is answered by one: {"answer": …} or {"error": …}.
import { createInterface } from "node:readline";
import { launch } from "./launch.mjs";
import { findOverflow } from "./overflow.mjs";

const PATIENCE = 20_000;

const [url] = process.argv.slice(2);
const requests = [];
const complaints = [];

async function answer(page, { name, values }) {
  try {
    return { answer: (await ACTIONS[name](page, values)) ?? null };
  } catch (error) {
    return { error: String(error) };
  }
}

const ACTIONS = {
  /** Waits until an element has a text within it. */
  wait: (page, { selector, text }) =>
    page.waitForFunction(
      (wanted, part) =>
        [...document.querySelectorAll(wanted)].some((each) => each.textContent.includes(part)),
      { timeout: PATIENCE },
      selector,
      text,
    ).then(() => null),
  async look(page, { width, scheme, path }) {
    await page.setViewport({ width, height: width < 500 ? 844 : 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    // A value that has just changed is lit up for a moment.
    await page.evaluate(() => document.getAnimations().forEach((each) => each.finish()));
    if (path) await page.screenshot({ path, fullPage: true });
    return {
      overflow: await page.evaluate(findOverflow),
      contrasts: await page.evaluate(findContrasts),
      background: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    };
  },
  /** The page as assistive technology reads it. */
  async read(page) {
    return {
      requests,
      complaints,
      text: await page.evaluate(() => document.querySelector("main").innerText),
      headings: await page.evaluate(() =>
        [...document.querySelectorAll("h1, h2")].map((each) => each.textContent),
      ),
      heads: await page.evaluate(() =>
        [...document.querySelectorAll("th")].map((each) => each.scope),
      ),
      markup: await page.evaluate(() => document.querySelectorAll("main img, main b").length),
      unnamed: await page.evaluate(() =>
        [...document.querySelectorAll("table")].filter(
          (each) => !each.ariaLabel && !each.getAttribute("aria-labelledby"),
        ).length,
      ),
    };
  },
  /** The rows of a table, each a list of its cells' texts. */
  rows: (page, { id }) =>
    page.evaluate(
      (table) =>
        [...document.querySelectorAll(`#${table} tbody tr`)].map((line) =>
          [...line.children].map((cell) => cell.textContent),
        ),
      id,
    ),
  /** Remembers the elements of a table, so that `isKept` can tell whether they were replaced. */
  remember: (page, { id }) =>
    page.evaluate((table) => {
      window.remembered = [...document.querySelectorAll(`#${table} tbody tr`)];
    }, id),
  isKept: (page) => page.evaluate(() => window.remembered.every((each) => each.isConnected)),
};

/** Texts whose contrast with what lies behind them is below 4.5 to 1 (WCAG 2.2, 1.4.3). */
function findContrasts() {
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [red, green, blue] = parts(color).slice(0, 3).map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (element) => {
    for (let box = element; box !== null; box = box.parentElement) {
      const color = getComputedStyle(box).backgroundColor;
      const [, , , alpha = 1] = parts(color);
      if (alpha === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  for (const element of document.body.querySelectorAll("*")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility() || element.closest("script")) continue;
    const [one, other] = [getComputedStyle(element).color, behind(element)].map(light);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${element.textContent.trim().slice(0, 40)}`);
  }
  return low;
}

const browser = await launch();
try {
  const page = await browser.newPage();
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url, { waitUntil: "domcontentloaded" });
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(page, JSON.parse(line))));
  }
} finally {
  await browser.close();
}
