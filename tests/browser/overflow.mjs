// Runs in a page: nothing of its file but the function itself is there.

/** Texts that stick out of the page, or out of a box that does not scroll. */
export function findOverflow() {
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
