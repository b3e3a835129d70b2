// The released build infos: releases/VERSION/build-info.json.gz, never rewritten once contracts of
// that version are on a chain. Not below contracts/, where Ape takes every file for a source.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

import { buildInfoOf, PROJECT } from "./build_info.mjs";

export const RELEASES = join(PROJECT, "releases");

/** The contracts behind proxies, which are upgraded. */
export const UPGRADEABLE = [
  "contracts/GroupMessages.sol:GroupMessages",
  "contracts/IdentityUpdates.sol:IdentityUpdates",
];

const FILE_NAME = "build-info.json.gz";
const VERSION = /^\d+\.\d+\.\d+$/;

/** A release cannot be read, or must not be written. */
export class ReleaseError extends Error {}

/** Write a version's build info; `replace` allows to overwrite one that was never deployed. */
export function writeRelease(version, { replace = false, folder = RELEASES } = {}) {
  if (!VERSION.test(version)) {
    throw new ReleaseError(`version: expected a form such as 0.1.0, got ${version}`);
  }
  const path = join(folder, version, FILE_NAME);
  if (existsSync(path) && !replace) {
    throw new ReleaseError(
      `release ${version}: expected a version not released yet, got one that is there; ` +
        "--replace overwrites what was never deployed",
    );
  }
  const buildInfo = buildInfoOf(UPGRADEABLE.map((contract) => contract.split(":")[0]));
  mkdirSync(join(folder, version), { recursive: true });
  const bytes = gzipSync(JSON.stringify(buildInfo), { level: 9 });
  writeFileSync(path, bytes);
  return { path, size: bytes.length };
}

/** The newest version and its build info. */
export function newestRelease(folder = RELEASES) {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const versions = names.filter((name) => VERSION.test(name));
  if (versions.length === 0) {
    throw new ReleaseError(`${folder}: expected a released build info, found none`);
  }
  const version = versions.sort(byPrecedence).at(-1);
  const path = join(folder, version, FILE_NAME);
  try {
    return { version, buildInfo: JSON.parse(gunzipSync(readFileSync(path)).toString("utf8")) };
  } catch (error) {
    throw new ReleaseError(`${path}: expected a build info, got ${error.message}`);
  }
}

function byPrecedence(one, other) {
  const [left, right] = [one, other].map((version) => version.split(".").map(Number));
  const index = left.findIndex((number, position) => number !== right[position]);
  return index === -1 ? 0 : left[index] - right[index];
}
