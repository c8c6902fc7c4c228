import { existsSync } from "node:fs";
import { describe, expect } from "vitest";

import { caseOf, json, plain, sideInfo, tally } from "./cases.js";
import { runCommand } from "./command.js";
import { isAlive } from "./processes.js";
import { outputOf, runMsOf, runOf, TOLD_RUNS } from "./run_cases.js";
import { fixture, test } from "./scenario.js";
import type { SidecarOptions } from "./sidecar.js";
import { readJsonLines } from "./shared.js";
import { until } from "./until.js";

const MEASURED = fixture("tells_what_was_measured.py");

function told(...args: string[]): SidecarOptions {
  return { metric: MEASURED, args: [...TOLD_RUNS, ...args] };
}

describe("cases without an output", () => {
  test("get theirs from a run of the artifact, and the metric gets it with what was measured", async ({ start }) => {
    const { client } = await start(told());
    const artifact = json("output = {'said': artifact[:6], 'of': input['n']}");

    const results = await client.score([{ id: "a", input: json({ n: 9 }) }, { input: json({ n: 8 }) }, caseOf("own")], {
      artifact,
    });

    expect(results.slice(0, 2).map(outputOf)).toEqual([
      { said: "output", of: 9 },
      { said: "output", of: 8 },
    ]);
    expect(sideInfo(results[0])).toEqual({
      output: { said: "output", of: 9 },
      observation: {
        run_ms: runMsOf(results[0]),
        run_not_measured_reason: "",
        cost_usd: 0,
        cost_not_measured_reason: "",
        usage: { calls: 0, prompt_tokens: 0, cached_prompt_tokens: 0, completion_tokens: 0, reasoning_tokens: 0 },
        id: results[0]?.observation?.id,
      },
      service_cost: 0,
    });
    expect(results[0]?.timing?.runMs).toBe(runMsOf(results[0]));
    // A case that brings its output is not run, and nothing was measured of it.
    expect(plain(results[2] ?? expect.fail())).not.toHaveProperty("observation");
    expect(sideInfo(results[2])).toMatchObject({ output: "own", observation: { run_ms: null, id: "" } });
  });

  test("get it in a unary call too", async ({ start }) => {
    const { client } = await start(told());

    const results = await client.scoreBatch([runOf("output = 1"), runOf("output = None")], json("unused"));

    expect(results.map(outputOf)).toEqual([1, null]);
  });

  test("are scored from the command line, with time and cost in the summary", async ({ workspace }) => {
    workspace.write("cases.csv", "n,label\n1,2\n2,4\n3,7\n");
    workspace.write("artifact.json", '{"factor": 2}');
    const run = workspace.write(
      "run.py",
      "def run(artifact, input):\n    return artifact['factor'] * int(input['n'])\n",
    );
    const metric = workspace.write(
      "metric.py",
      'def score(input, output, expected):\n    return float(output == int(expected["label"])), {"feedback": str(output)}\n',
    );
    const options = ["--metric", metric, "--run", run, "--artifact", "artifact.json", "--cases", "cases.csv"];
    const columns = ["--output-columns", "label", "--output", "results.jsonl"];

    const { code, stdout, stderr } = await runCommand(["score", ...options, ...columns], { cwd: workspace.path });

    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^score +3 +0\.6667 /m);
    expect(stdout).toMatch(/^run time p50 [\d.]+ ms, p99 [\d.]+ ms$/m);
    expect(stdout).toMatch(/^run cost \$0 \(no model calls\)$/m);
    expect(readJsonLines(`${workspace.path}/results.jsonl`)).toMatchObject([
      { index: 0, score: { value: 1, feedback: "2" }, output: { json: "2" }, observation: { cost_usd: 0 } },
      { index: 1, score: { value: 1, feedback: "4" }, output: { json: "4" } },
      { index: 2, score: { value: 0, feedback: "6" }, output: { json: "6" } },
    ]);
  });
});

describe("a fault of run code costs its own case", () => {
  test("and has a code of its own", async ({ start, workspace }) => {
    const pid = workspace.write("grandchild", "");
    const faults = [
      "raise KeyError('lost')",
      "import sys; sys.exit(3)",
      "raise KeyboardInterrupt",
      "import os; os._exit(3)",
      "import os; os._exit(0)",
      "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
      "import os, signal; os.killpg(0, signal.SIGKILL)",
      "output = {1, 2}",
      "output = {'a': [float('nan')]}",
      "output = lambda: None",
      `import os, time\nif not os.fork():\n    os.setsid()\n    open(${JSON.stringify(pid)}, 'w').write(str(os.getpid()))\ntime.sleep(600)`,
    ];
    const { client } = await start(told("--run-timeout", "2", "--max-runs", "4"));

    const results = await client.score(
      faults.flatMap((fault) => [runOf(fault), runOf("output = 'fine'")]),
      { artifact: json("") },
    );

    expect(tally(results)).toEqual({
      SCORE: faults.length,
      RUN_EXCEPTION: 3,
      RUN_CRASHED: 4,
      RUN_RETURN_VALUE: 3,
      RUN_TIMEOUT: 1,
    });
    expect(results.filter((_, place) => place % 2 === 1).map(outputOf)).toEqual(faults.map(() => "fine"));
    const messages = results.flatMap(({ outcome }) => (outcome.case === "error" ? [outcome.value.message] : []));
    const wanted = [
      /^KeyError: 'lost' /,
      /^SystemExit: 3 /,
      /^KeyboardInterrupt/,
      /exited with code 3;/,
      /exited with code 0;/,
      /SIGSEGV/,
      /SIGKILL/,
      /^run returned a set, which JSON cannot hold; return /,
      /output\["a"\]\[0\] is nan/,
      /^run returned a function, /,
      /longer than its timeout of 2 s .*--run-timeout/,
    ];
    wanted.forEach((expected, place) => expect(messages[place]).toMatch(expected));
    // What a run started in a session of its own goes with it.
    const grandchild = Number(workspace.read("grandchild"));
    expect(grandchild).toBeGreaterThan(0);
    await until("what the run started is gone", () => !isAlive(grandchild));
  });

  test("and the time until then is measured", async ({ start }) => {
    const { client } = await start(told("--run-timeout", "0.5"));

    const results = await client.score([runOf("import time; time.sleep(60)")], { artifact: json("") });

    expect(tally(results)).toEqual({ RUN_TIMEOUT: 1 });
    expect(runMsOf(results[0])).toBeGreaterThanOrEqual(500);
  });

  test("as does an artifact that is not JSON", async ({ start }) => {
    const { client } = await start(told());
    const artifact = { kind: { case: "json", value: "{not json" } } as const;

    const results = await client.score([runOf("output = 1"), caseOf("own")], { artifact });

    expect(tally(results)).toEqual({ INVALID_CASE: 1, SCORE: 1 });
  });
});

describe("runs in progress", () => {
  /** Notes that it began, and goes on once as many are in progress as may be. */
  const crowd = (file: string, most: number) => `import os, time
note = os.open(${JSON.stringify(file)}, os.O_RDWR | os.O_APPEND | os.O_CREAT)
os.write(note, b"+")
deadline = time.monotonic() + 10
while os.pread(note, 10_000, 0).count(b"+") < ${most} and time.monotonic() < deadline:
    time.sleep(0.005)
time.sleep(0.02)
os.write(note, b"-")
output = True`;

  test.for([1, 3, 5])(
    "are at most %i with --max-runs, whatever calls they belong to",
    async (most, { start, workspace }) => {
      const { client } = await start(told("--max-runs", String(most)));
      const notes = `${workspace.path}/notes`;
      const cases = Array.from({ length: 8 }, () => runOf(crowd(notes, most)));

      const calls = await Promise.all([1, 2, 3].map(() => client.score(cases, { artifact: json("") })));

      expect(calls.map(tally)).toEqual(calls.map(() => ({ SCORE: 8 })));
      expect(mostAtOnce(workspace.read("notes"))).toBe(most);
    },
  );

  test("are measured without their waiting for a place", async ({ start }) => {
    const { client } = await start(told("--max-runs", "1"));
    const began = performance.now();

    const results = await client.score(
      Array.from({ length: 6 }, () => runOf("import time; time.sleep(0.1)")),
      { artifact: json("") },
    );

    const wallMs = performance.now() - began;
    const times = results.map(runMsOf);
    // One after another: with the waiting in them they would add up to several times the wall time.
    expect(times.reduce((sum, time) => sum + time)).toBeLessThanOrEqual(wallMs);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(100);
    expect(Math.max(...results.map(({ timing }) => timing?.queuedMs ?? 0))).toBeGreaterThanOrEqual(500);
  });

  test("that sleep 300 ms are measured as such", async ({ start }) => {
    const { client } = await start(told());

    const results = await client.score(
      Array.from({ length: 50 }, () => runOf("import time; time.sleep(0.3)")),
      { artifact: json("") },
    );

    const times = results.map(runMsOf).sort((a, b) => a - b);
    expect(times[0]).toBeGreaterThanOrEqual(300);
    // 325 on a machine with nothing else to do; here with room for what other tests do meanwhile.
    expect(times[44]).toBeLessThan(400);
  });
});

describe("an output", () => {
  test.for([100, 1024, 10 * 1024])("of %i KiB arrives whole, time after time", async (kibibytes, { start }) => {
    const { client } = await start({ metric: fixture("measures_length.py"), args: [...TOLD_RUNS, "--max-runs", "4"] });
    const length = kibibytes * 1024;
    let received = 0;

    const results = await client.score(
      Array.from({ length: 50 }, (_, place) => runOf(`output = str(${place % 10}) * ${length}`)),
      {
        artifact: json(""),
        onResponse: ({ results: some }) => {
          for (const result of some) {
            const text = result.output?.kind.value;
            if (typeof text === "string" && text.length === length + 2) received += 1;
            // So many are not kept.
            delete result.output;
          }
        },
      },
    );

    expect(tally(results)).toEqual({ SCORE: 50 });
    expect(received).toBe(50);
  });
});

describe("a run's scratch folder", () => {
  const LEAVES = `import os, tempfile
open("left", "w").close()
os.makedirs("locked/inside")
open("locked/inside/file", "w").close()
os.chmod("locked", 0)
output = [os.getcwd(), tempfile.mkdtemp(), os.listdir()]`;

  test("is its own, its place for temporary files, and removed", async ({ start }) => {
    const { client } = await start(told());

    const results = await client.score(
      Array.from({ length: 4 }, () => runOf(LEAVES)),
      { artifact: json("") },
    );

    const outputs = results.map(outputOf) as [string, string, string[]][];
    expect(new Set(outputs.map(([folder]) => folder)).size).toBe(4);
    for (const [folder, temporary, names] of outputs) {
      expect(temporary.startsWith(`${folder}/`)).toBe(true);
      expect(names.filter((name) => !temporary.endsWith(name)).sort()).toEqual(["left", "locked"]);
      await until("the scratch folder is removed", () => !existsSync(folder));
    }
  });

  test("is removed after a run that was killed", async ({ start, workspace }) => {
    const { client } = await start(told("--run-timeout", "0.5"));
    const note = JSON.stringify(`${workspace.path}/folder`);
    const code = `import os, time\nopen("left", "w").close()\nopen(${note}, "w").write(os.getcwd())\ntime.sleep(60)`;

    const results = await client.score([runOf(code)], { artifact: json("") });

    expect(tally(results)).toEqual({ RUN_TIMEOUT: 1 });
    const folder = workspace.read("folder");
    expect(folder).toMatch(/^\//);
    await until("the scratch folder is removed", () => !existsSync(folder));
  });
});

describe("run code that does not load", () => {
  test("is told at once, as itself", async ({ start, workspace }) => {
    const { client } = await start({
      metric: MEASURED,
      args: ["--run", workspace.write("run.py", "def run(artifact:\n")],
    });

    expect(await client.describeMetric()).toMatchObject({
      loaded: false,
      loadError: expect.stringMatching(/SyntaxError.*run\.py/) as string,
    });
  });

  test("is needed only for cases without an output", async ({ start }) => {
    const { client } = await start("exact_match.py");

    const results = await client.score([runOf("output = 1")], { artifact: json("") });

    expect(results.map(plain)).toMatchObject([
      { error: { message: expect.stringMatching(/--run run\.py/) as string } },
    ]);
  });
});

/** Notes are `+` for each run that began and `-` for each that ended. */
function mostAtOnce(notes: string): number {
  let running = 0;
  return Math.max(...Array.from(notes, (note) => (running += note === "+" ? 1 : -1)));
}

describe("the contract check", () => {
  const METRIC = `from skynet import reward
REWARD_SPEC = {
    "weights": {"accuracy": 0.6, "speed": 0.2, "cost": 0.2},
    "accuracy": {},
    "speed": {"reference": 60000},
    "cost": {"reference": 0.01},
}
def score(input, output, expected=None):
    return reward(REWARD_SPEC, float(output == expected["label"]), "Judged.")
`;

  test.for([
    [
      "return input['n'] * 2",
      0,
      /^✓ Run return value: .*^✓ Metric return value: .*sample 3 scored 0\.4: accuracy 0, speed [\d.]+ \([\d.]+ ms\), cost 1 \(\$0\)$/ms,
    ],
    ["return {1, 2}", 1, /Run return value.*run returned a set, which JSON cannot hold/s],
    ["raise KeyError('lost')", 1, /Run return value.*KeyError: 'lost'/s],
  ] as const)("includes the run: %s", async ([body, code, said], { workspace }) => {
    workspace.write("cases.csv", "n,label\na,aa\nb,bb\nc,xx\n");
    workspace.write("artifact.txt", "an artifact");
    const run = workspace.write("run.py", `def run(artifact, input):\n    ${body}\n`);
    const metric = workspace.write("metric.py", METRIC);
    const options = ["--metric", metric, "--run", run, "--artifact", "artifact.txt", "--cases", "cases.csv"];

    const outcome = await runCommand(["check", ...options, "--output-columns", "label"], { cwd: workspace.path });

    expect(outcome.stdout).toMatch(said);
    expect(outcome.code).toBe(code);
  });
});
