// Checks the contracts below each folder that is named, as `tools/upgrades` does for one: to load
// the compiler takes longer than to use it. Prints a line of JSON for each folder, in their order.
import { argv } from "node:process";

import { upgradesFrom } from "../../tools/upgrades/check.mjs";
import { newestRelease, RELEASES } from "../../tools/upgrades/releases.mjs";

const release = newestRelease(RELEASES);
argv.slice(2).forEach((folder) => console.log(JSON.stringify(upgradesFrom(release, folder))));
