import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./command.mjs";

/**
 * The licences of every npm package that has a file in the bundle, as the text to ship with it.
 * @param {string[]} inputs the bundled files, relative to the repository
 */
export function thirdPartyNotices(inputs) {
  const folders = new Set(inputs.map(packageFolder).filter((folder) => folder !== undefined));
  const notices = [...folders].sort().map(notice);
  return [INTRODUCTION, ...notices].join(`\n${"-".repeat(78)}\n\n`);
}

const INTRODUCTION = `skynet-scorer.js contains these packages, each under its own licence.\n`;

/** `node_modules/a/node_modules/@b/c/d.js` → `node_modules/a/node_modules/@b/c` */
function packageFolder(input) {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
}

function notice(folder) {
  const path = join(root, folder);
  const { name, version, license } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  if (!ALLOWED.includes(license)) {
    throw new Error(
      `${name} ${version} has the licence ${JSON.stringify(license)}; a bundled package needs one of ${ALLOWED.join(", ")}`,
    );
  }
  const texts = readdirSync(path)
    .filter((file) => /^(licen[cs]e|copying|notice)([.-].*)?$/i.test(file))
    .sort()
    .map((file) => readFileSync(join(path, file), "utf8").trim());
  return [`${name} ${version} (${license})`, ...texts, ""].join("\n\n");
}

/** Each lets a bundle be passed on under the MIT licence, given its notice. */
const ALLOWED = [
  "MIT",
  "ISC",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "(Apache-2.0 AND BSD-3-Clause)",
];
