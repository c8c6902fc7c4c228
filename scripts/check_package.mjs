// Packs the package, installs it in an empty folder and scores the example from there with the command that it brings.
import "./node_version.mjs";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "./build.mjs";
import { root } from "./command.mjs";
import { findPython, setUpNode } from "./setup.mjs";

/** What is only of use in the repository. */
const STRAY = /(^|\/)(test|tests|src|bench|node_modules|__pycache__)\/|\.(pyc|log|tgz)$/;

await setUpNode();
await build();
const folder = mkdtempSync(join(tmpdir(), "skynet-package-"));
try {
  const [{ filename, files, unpackedSize }] = JSON.parse(
    capture("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], root),
  );
  const stray = files.map(({ path }) => path).filter((path) => STRAY.test(path));
  check(stray.length === 0, `the package holds files that do not belong in it: ${stray.join(", ")}`);

  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  capture("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${filename}`], folder);
  const installed = Object.keys(JSON.parse(readFileSync(join(folder, "node_modules", ".package-lock.json"))).packages);
  check(installed.length === 1, `the package should install nothing else; it installed ${installed.join(", ")}`);

  cpSync(join(folder, "node_modules", "skynet-scorer", "examples", "support-tickets"), join(folder, "tickets"), {
    recursive: true,
  });
  const summary = capture("npx", ["--no-install", "skynet-scorer", "score", ...exampleOptions()], folder);
  const scored = readFileSync(join(folder, "results.jsonl"), "utf8").trimEnd().split("\n").map(JSON.parse);
  check(scored.length >= 60, `expected a result for each ticket, got ${scored.length}`);
  const without = scored.filter(({ score }) => score === undefined);
  check(without.length === 0, `every ticket should have a score; these have none: ${JSON.stringify(without)}`);
  console.log(summary);
  console.log(
    `package: ${files.length} files, ${Math.round(unpackedSize / 1024)} KiB, ${scored.length} tickets scored`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function exampleOptions() {
  return [
    ...["--python", findPython()],
    ...["--metric", "tickets/metric.py"],
    ...["--cases", "tickets/tickets.csv"],
    ...["--id-column", "id"],
    ...["--input-columns", "subject,message"],
    ...["--output-columns", "category,priority"],
    ...["--prediction-column", "prediction"],
    ...["--output", "results.jsonl"],
  ];
}

function capture(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 });
  check(
    status === 0,
    `${command} ${args.join(" ")} failed: ${error?.message ?? `exit code ${status}\n${stdout}${stderr}`}`,
  );
  return stdout;
}

function check(holds, message) {
  if (!holds) throw new Error(message);
}
