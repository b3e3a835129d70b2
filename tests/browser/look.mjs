// Opens a page as a reader would, offline and without scripts, and says as JSON what is to be seen.
//
//   node tests/browser/look.mjs PAGE.html PRINTED.pdf
import { pathToFileURL } from "node:url";
import { launch } from "./launch.mjs";
import { findOverflow } from "./overflow.mjs";

const SCREENS = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];

/** A4 within the page's margins of 14 mm. */
const PAPER = { width: 688, height: 1000 };

const [file, printed] = process.argv.slice(2);
const browser = await launch();
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
  const sight = {};
  for (const screen of SCREENS) {
    await page.setViewport(screen);
    overflow[screen.width] = await page.evaluate(findOverflow);
    sight[screen.width] = await page.evaluate(findInSight);
  }
  await page.emulateMediaType("print");
  await page.setViewport(PAPER);
  sight.paper = await page.evaluate(findInSight);
  await page.emulateMediaType("screen");
  await page.setViewport(SCREENS[0]);
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
    sight,
    complaints,
    requests: requests.filter((request) => !expected.has(request.split("#")[0])),
  };
}

/** The functions from here on run in the page. */
function findVisibleHeadings() {
  return [...document.querySelectorAll("h1, h2")]
    .filter((heading) => heading.checkVisibility() && heading.getBoundingClientRect().height > 0)
    .map((heading) => heading.textContent);
}

function measurePlots() {
  const plots = [...document.querySelectorAll("figure svg")];
  return plots.filter((plot) => plot.checkVisibility()).map((plot) => {
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

/** Everything in sight without scrolling to the right, and at the top without scrolling at all. */
function findInSight() {
  const visible = (selector) =>
    [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  const rectOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  };
  /** Whether a rectangle is within the window, and within each box around it that scrolls. */
  const isInSight = (rect, element) => {
    let [left, right] = [0, document.documentElement.clientWidth];
    for (let box = element.parentElement; box !== null; box = box.parentElement) {
      if (getComputedStyle(box).overflowX === "visible" && !box.matches(".card")) continue;
      left = Math.max(left, box.getBoundingClientRect().left);
      right = Math.min(right, box.getBoundingClientRect().right);
    }
    return rect.left >= left - 1 && rect.right <= right + 1;
  };
  const words = (element) => element.textContent.replace(/\s+/g, " ").trim();
  const [strips] = visible("figure.in-two-widths svg");
  const texts = strips ? [...strips.querySelectorAll("text")] : [];
  const first = document.querySelector(".verdict p");
  const isOnTop = first && rectOf(first).bottom <= window.innerHeight;
  return {
    verdicts: visible(".nodes .outcome").map((cell) =>
      isInSight(rectOf(cell), cell) ? words(cell) : `out of sight: ${words(cell)}`,
    ),
    strips: strips ? isInSight(strips.getBoundingClientRect(), strips) : null,
    labels: texts.map((text) => text.textContent),
    hidden: texts
      .filter((text) => !isInSight(text.getBoundingClientRect(), text))
      .map((text) => text.textContent),
    smallest: Math.min(...texts.map((text) => text.getBoundingClientRect().height)),
    broken: brokenNumbers(),
    first: isOnTop ? words(first) : null,
  };

  /** Numbers with their sign, and shortened hashes, that stand on more than one line. */
  function brokenNumbers() {
    const whole = /0x[0-9a-f]+…[0-9a-f]+|\d[\d.]*(?:[\u2009\u202f](?:\d{3}\b|[%×]))+(?:\.\d+)?/g;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const broken = [];
    while (walker.nextNode()) {
      for (const match of walker.currentNode.data.matchAll(whole)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, match.index);
        range.setEnd(walker.currentNode, match.index + match[0].length);
        const lines = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
        if (lines.size > 1) broken.push(match[0]);
      }
    }
    return broken;
  }
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
