import { afterEach, beforeEach, expect, it } from "vitest";

import { mergeSamples } from "../../src/cli/check.js";
import { ContractStatus } from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import { runCommand } from "../e2e/command.js";
import { Workplace } from "./command_fixture.js";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.file("good.py", 'def score(input, output, expected):\n    return 1.0, {"feedback": "Fine."}\n');
  place.file("bad.py", 'def score(input, output, expected):\n    return 1.0, {"reason": "No feedback."}\n');
  place.file("raises.py", "def score(input, output, expected):\n    raise ValueError(expected)\n");
  place.file("cases.csv", "text,answer,label\na,b,c\nd,e,f\ng,h,i\nj,k,l\n");
});
afterEach(async () => {
  await place.clear();
});

const COLUMNS = ["--cases", "cases.csv", "--prediction-column", "answer", "--output-columns", "label"];

function check(...args: string[]): ReturnType<typeof runCommand> {
  return runCommand(["check", ...args], { cwd: place.folder, env: place.env });
}

it("prints each check with its mark, and the verdict", async () => {
  const { code, stdout } = await check("--metric", "good.py", ...COLUMNS);
  expect(stdout).toMatch(/^✓ Metric file: .*\n✓ Metric function: .*\n✓ Reward spec: .*\n✓ Sample cases: 3 .*\n/);
  expect(stdout).toContain("\n\nThe metric keeps its contract: 6 passed, 0 failed, 0 skipped");
  expect(stdout).not.toContain("\u001B");
  expect(code).toBe(0);
});

it("says what is wrong, skips what depends on it, and exits 1", async () => {
  const { code, stdout } = await check("--metric", "bad.py", ...COLUMNS);
  expect(stdout).toContain("✗ Metric return value: ");
  expect(stdout).toContain('no "feedback"');
  expect(stdout).toContain("The metric breaks its contract: 5 passed, 1 failed, 0 skipped");
  expect(code).toBe(1);
});

it("shows the traceback of what was raised", async () => {
  const { code, stdout } = await check("--metric", "raises.py", ...COLUMNS);
  expect(stdout).toMatch(/✗ Metric call: .*\n(.*\n)*? {4}Traceback \(most recent call last\):\n/);
  expect(stdout).toContain("      File ");
  expect(stdout).toMatch(/– Metric return value: /);
  expect(code).toBe(1);
});

it("runs the artifact first, tells what each sample was measured at, and whose fault it is", async () => {
  place.file("prompt.txt", "Hello");
  place.file("run.py", "def run(artifact, input):\n    return artifact + input['text']\n");
  place.file("bad_run.py", "def run(artifact, input):\n    return {1, 2}\n");
  place.file(
    "reward.py",
    'from skynet import reward\nREWARD_SPEC = {"weights": {"accuracy": 1, "speed": 1, "cost": 1}, "accuracy": {}, ' +
      '"speed": {"reference": 60000}, "cost": {"reference": 1}}\n' +
      'def score(input, output, expected):\n    return reward(REWARD_SPEC, 1.0, "Fine as it stands.")\n',
  );
  const artifact = ["--artifact", "prompt.txt", "--cases", "cases.csv", "--output-columns", "label"];
  const good = await check("--metric", "reward.py", "--run", "run.py", ...artifact);
  expect(good.stdout).toMatch(
    /^✓ Run return value: .* for every sample, in \d+, \d+ and \d+ ms; it made no model calls through the gateway$/m,
  );
  expect(good.stdout).toMatch(
    /^✓ Metric return value: .*\n {4}sample 1 scored 1: accuracy 1, speed 1 \([\d.]+ ms\), cost 1 \(\$0\)\n {4}sample 2 /m,
  );
  expect(good.code).toBe(0);
  const bad = await check("--metric", "reward.py", "--run", "bad_run.py", ...artifact);
  expect(bad.stdout).toMatch(/^✗ Run return value: sample 1, sample 2 and sample 3: run returned a set, /m);
  expect(bad.stdout).not.toContain("Traceback");
  expect(bad.stdout).toContain("The run code breaks its contract: 4 passed, 1 failed, 2 skipped");
  expect(bad.code).toBe(1);
});

it.each(["good.py", "bad.py", "raises.py"])(
  "claims nothing of score where there are no cases to call it with, and says how to give some: %s",
  async (metric) => {
    const { code, stdout } = await check("--metric", metric);
    const how = "give --cases FILE and --prediction-column NAME, and --output-columns NAMES for expected values";
    expect(stdout).toContain(`– Sample cases: none were given; ${how}\n`);
    expect(stdout).toMatch(
      /\n\nNothing is wrong so far, and nothing is known of what score\(\) does: 3 passed, 0 failed, \d skipped\n/,
    );
    expect(stdout).toContain(`\nIt was never called; ${how}\n`);
    expect(stdout).not.toContain("keeps its contract");
    expect(code).toBe(0);
  },
);

it("reports each fault once: nothing of it is in the log too", async () => {
  place.file("broken.py", "import nothing_of_that_name\n");
  for (const metric of ["bad.py", "raises.py", "broken.py"]) {
    const { code, stderr } = await check("--metric", metric, ...COLUMNS);
    expect([code, stderr]).toEqual([1, ""]);
  }
  expect((await check("--metric", "bad.py", ...COLUMNS, "--log-level", "debug")).stderr).toContain(
    "METRIC_RETURN_VALUE",
  );
});

it("says that nobody answers as score does", async () => {
  const { code, stderr } = await check("--connect", "127.0.0.1:1");
  expect(stderr).toBe(
    "skynet-scorer: no sidecar answers at 127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1); start one with: skynet-scorer serve --metric metric.py\n",
  );
  expect(code).toBe(1);
});

it.each([
  ["sample 1: A; sample 2: A; sample 3: A", "samples 1, 2 and 3: A"],
  ["sample 1: A; sample 2: A; then do this", "samples 1 and 2: A; then do this"],
  [
    'sample 1 ("a"): A; b; sample 2 ("b; \\"sample 3: ") : A',
    'sample 1 ("a"): A; b; sample 2 ("b; \\"sample 3: ") : A',
  ],
  ['sample 1 ("a"): A; sample 3 ("c"): B; sample 4 ("d"): A', 'samples 1 ("a") and 4 ("d"): A; sample 3 ("c"): B'],
  ["3 can be given to the metric", "3 can be given to the metric"],
])("tells equal faults of samples once: %s", (message, merged) => {
  expect(mergeSamples(message)).toBe(merged);
});

it("prints JSON for machines, one event a line", async () => {
  const { code, stdout } = await check("--metric", "bad.py", "--json", ...COLUMNS);
  const events = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, Record<string, unknown>>);
  expect(events.map((event) => Object.keys(event))).toEqual([...Array<string[]>(6).fill(["check"]), ["verdict"]]);
  expect(events[5]?.["check"]).toMatchObject({
    step: "CONTRACT_STEP_METRIC_RETURN_VALUE",
    name: "Metric return value",
    status: `CONTRACT_STATUS_${ContractStatus[ContractStatus.FAILED]}`,
  });
  expect(events[6]?.["verdict"]).toMatchObject({ passed: false, failed_count: 1 });
  expect(code).toBe(1);
});

it("refuses a case file that is wrong before anything starts", async () => {
  const { code, stderr } = await check("--metric", "good.py", ...COLUMNS, "--id-column", "nr");
  expect(stderr).toBe(
    "skynet-scorer: --id-column nr: cases.csv has no such column; its columns are: text, answer, label\n",
  );
  expect(code).toBe(2);
});

it("refuses columns without cases", async () => {
  const { code, stderr } = await check("--metric", "good.py", "--prediction-column", "answer");
  expect(stderr).toBe("skynet-scorer: --cases: columns are named, but no file; give --cases FILE too\n");
  expect(code).toBe(2);
});
