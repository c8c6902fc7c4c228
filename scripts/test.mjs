// Sets everything up and runs every test, vitest's and pytest's: `npm test`.
import "./node_version.mjs";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { root, run } from "./command.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

rmSync(join(reports(), "totals.txt"), { force: true });
await setUpNode();
const python = await setUpPython();
await build();

mkdirSync(reports(), { recursive: true });
const runners = [await vitest(), await pytest()];

const sum = (what) => runners.reduce((total, runner) => total + runner[what], 0);
const totals = [
  ...runners.map(({ name, passed, failed, skipped }) => `${name}: ${line(passed, failed, skipped)}`),
  line(sum("passed"), sum("failed"), sum("skipped")),
].join("\n");
console.log(`\n${totals}`);
writeFileSync(join(reports(), "totals.txt"), `${totals}\n`);
process.exitCode = runners.every(({ code, passed }) => code === 0 && passed > 0) ? 0 : 1;

async function vitest() {
  const report = join(reports(), "vitest.json");
  rmSync(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const code = await run(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...reporters]);
  return { name: "vitest", code, ...readReport(report, countVitest) };
}

async function pytest() {
  const report = join(reports(), "pytest.xml");
  rmSync(report, { force: true });
  const code = await run(python, ["-m", "pytest", "python/tests", `--junitxml=${report}`]);
  return { name: "pytest", code, ...readReport(report, countPytest) };
}

function countVitest(text) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(text);
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
}

function countPytest(text) {
  const suite = /<testsuite [^>]*>/.exec(text)?.[0] ?? "";
  const attribute = (name) => Number(new RegExp(` ${name}="(\\d+)"`).exec(suite)?.[1] ?? 0);
  const [failed, skipped] = [attribute("failures") + attribute("errors"), attribute("skipped")];
  return { passed: attribute("tests") - failed - skipped, failed, skipped };
}

/** A runner that died before it could report has failed, whatever it had passed. */
function readReport(path, count) {
  try {
    return count(readFileSync(path, "utf8"));
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

function line(passed, failed, skipped) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function reports() {
  return join(root, "node_modules", ".cache", "skynet-scorer");
}
