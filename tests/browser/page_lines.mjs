// node:readline in a page: lines are those that the page's driver reads.
export async function* createInterface() {
  for (let line = await window.nextLine(); line !== null; line = await window.nextLine()) yield line;
}
