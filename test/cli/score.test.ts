import { existsSync, linkSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { BUNDLE, type CommandOptions, runCommand, runProgram } from "../e2e/command.js";
import { processesWith } from "../e2e/processes.js";
import { until } from "../e2e/until.js";
import { Workplace } from "./command_fixture.js";

/** Scores the length of the output; some outputs ask for something else. */
const METRIC = `
import os, time

def score(input, output, expected=None):
    if output == "raise":
        raise ValueError("a bad output")
    if output == "exit":
        os._exit(3)
    if output == "wait":
        open(os.path.join(os.path.dirname(__file__), "waiting"), "w").close()
        time.sleep(1000)
    if output == "print":
        print("seen", input, expected)
    return len(output) / 10, {"feedback": f"{len(output)} characters", "scores": {"__proto__": 0.5}}
`;

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.file("metric.py", METRIC);
});
afterEach(async () => {
  await place.clear();
});

function score(
  cases: string,
  args: readonly string[] = [],
  options: CommandOptions = {},
): ReturnType<typeof runCommand> {
  place.file("cases.csv", cases);
  const all = ["score", "--metric", "metric.py", "--cases", "cases.csv", "--prediction-column", "output", ...args];
  return runCommand(all, { cwd: place.folder, ...options, env: { ...place.env, ...options.env } });
}

describe("a whole file", () => {
  it("is scored, summed up and written in the order of the cases", async () => {
    const rows = Array.from({ length: 1000 }, (_, index) => `c${String(index)},${"x".repeat(index % 11)}`);
    const { code, stdout, stderr } = await score(`id,output\n${rows.join("\n")}\n`, [
      "--id-column",
      "id",
      "--output",
      "r.jsonl",
      "--batch-size",
      "7",
    ]);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\n +cases +mean +sd +95 % confidence\nscore +1,000 +0\.49\d\d /);
    expect(stdout).toContain(
      "\nlowest   score  feedback\nc0      0.0000  0 characters\nc11     0.0000  0 characters\n",
    );
    expect(stdout).toContain("\n1,000 of 1,000 cases\nmetric time p50 ");
    expect(stdout).toContain("\n\n1,000 results in r.jsonl\n");
    expect(code).toBe(0);
    expect(place.results("r.jsonl").map(({ id, score: got }) => [id, got?.value])).toEqual(
      rows.map((row, index) => [row.split(",")[0], (index % 11) / 10]),
    );
  });

  it("that has cases which fail has an exit code of 1 and every result", async () => {
    const { code, stdout } = await score("output\nx\nraise\nexit\nyy\n", ["--json", "--log-level", "silent"]);
    expect(JSON.parse(stdout)).toMatchObject({
      end: "complete",
      results: 4,
      scored: 2,
      errors_by_code: { METRIC_EXCEPTION: 1, METRIC_CRASHED: 1 },
      score: { cases: 2, mean: expect.closeTo(0.15) as number },
      lowest: [{ line: 2 }, { line: 5 }],
    });
    expect(code).toBe(1);
  });

  it("tells of a row that lacks a column in the words of the options", async () => {
    place.file("cases.jsonl", '{"output": "x", "label": 1}\n{"label": 2}\n{"output": "y"}\n');
    const args = ["--cases", "cases.jsonl", "--output-columns", "label", "--output", "r.jsonl"];
    const { code, stdout, stderr } = await score("output\nx\n", args);
    expect(stdout).toContain('INVALID_CASE      1  line 2, index 1: no "output" (--prediction-column)\n');
    expect(place.results("r.jsonl")[1]?.error).toMatchObject({ message: 'no "output" (--prediction-column)' });
    expect(stderr).toContain(
      'skynet-scorer: cases.jsonl: line 3: no "label" (--output-columns); the metric gets no such expected value\n',
    );
    expect(code).toBe(1);
  });

  it("may come on standard input", async () => {
    const args = ["--cases", "-", "--json"];
    const { code, stdout } = await score("", args, { input: '{"output": "xx"}\n{"output": "xxxx"}\n' });
    expect(JSON.parse(stdout)).toMatchObject({ cases: 2, score: { mean: expect.closeTo(0.3) as number } });
    expect(code).toBe(0);
  });

  it("has one traceback of each kind of error in the log, since the summary counts them; at level debug all", async () => {
    const cases = `output\n${"raise\n".repeat(3)}`;
    const { stderr } = await score(cases);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(stderr)).toMatchObject({
      code: "METRIC_EXCEPTION",
      msg: expect.stringContaining("a bad") as string,
    });
    expect((await score(cases, ["--log-level", "debug"])).stderr.split("METRIC_EXCEPTION")).toHaveLength(4);
  });

  it("has its log made readable where that is asked for", async () => {
    const { stderr } = await score("output\nprint\n", ["--log-format", "pretty"]);
    expect(stderr).toMatch(/^\[.*\] .*INFO.*: seen \{\} None/);
  });

  it("has what the metric prints in the log, with the case", async () => {
    const { stderr } = await score("id,output,label\na,print,é\n", ["--id-column", "id", "--output-columns", "label"]);
    expect(JSON.parse(stderr)).toMatchObject({ case: "a", stream: "stdout", msg: "seen {} {'label': 'é'}" });
  });

  it("has a named score whatever its name", async () => {
    const { stdout } = await score("output\nx\n", ["--json"]);
    expect(stdout).toContain('"scores":{"__proto__":{"cases":1,"mean":0.5,');
  });

  it("may be run on an artifact first, given as a file's text or a JSON file's value", async () => {
    place.file("run.py", "def run(artifact, input):\n    return artifact['prefix'] + input['text']\n");
    place.file("artifact.json", '{"prefix": "ab"}');
    place.file("cases.csv", "text\nc\ncdef\n");
    const { code, stdout, stderr } = await runCommand(
      ["score", "--metric=metric.py", "--cases=cases.csv", "--run=run.py", "--artifact=artifact.json", "--json"],
      { cwd: place.folder, env: place.env },
    );
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toMatchObject({ results: 2, score: { mean: expect.closeTo(0.45) as number } });
    expect(code).toBe(0);
  });

  it("may be scored by a sidecar that runs already", async () => {
    const sidecar = place.start(["serve", "--metric", "metric.py", "--listen", "127.0.0.1:0"]);
    const { addresses } = (await sidecar.firstLine()) as { addresses: [string] };
    place.file("cases.csv", "output\nxx\n");
    const { code, stdout } = await runCommand(
      ["score", "--connect", addresses[0], "--cases", "cases.csv", "--prediction-column", "output", "--json"],
      { cwd: place.folder, env: { ...place.env, http_proxy: "http://127.0.0.1:1", SKYNET_SCORER_METRIC: "metric.py" } },
    );
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { results: 1 }]);
    sidecar.child.kill("SIGTERM");
    expect(await sidecar.ended()).toBe(0);
  });
});

describe("a run that ends early", () => {
  const WAITS = `output\nx\nyy\nwait\n${"zzz\n".repeat(50)}`;

  async function waiting(cases: string, ...args: string[]): Promise<ReturnType<Workplace["start"]>> {
    place.file("cases.csv", cases);
    const command = place.start([
      ...["score", "--metric", "metric.py", "--cases", "cases.csv", "--prediction-column", "output"],
      ...["--output", "r.jsonl", "--workers", "2", "--log-level", "silent", ...args],
    ]);
    await until("a case waits", () => existsSync(join(place.folder, "waiting")));
    await until("those before it are written", () => {
      return existsSync(join(place.folder, "r.jsonl")) && place.results("r.jsonl").length >= 2;
    });
    return command;
  }

  it.each(["SIGINT", "SIGTERM"] as const)("by %s keeps what it has, says how much, and exits 130", async (signal) => {
    const command = await waiting(WAITS);
    command.child.kill(signal);
    expect(await command.ended()).toBe(130);
    const results = place.results("r.jsonl");
    const indexes = results.map(({ index }) => index);
    expect(indexes.slice(0, 2)).toEqual([0, 1]);
    expect(indexes).toEqual([...indexes].sort((one, other) => one - other));
    expect(indexes).not.toContain(2);
    const many = String(results.length);
    expect(command.stderr).toBe(
      `skynet-scorer: interrupted: ${many} of 53 cases have a result; r.jsonl has ${many} of them\n`,
    );
    expect(command.stdout).toContain(`\n${many} of 53 cases\n`);
  });

  it("by the death of its sidecar keeps what it has, says how that ended, and exits 1", async () => {
    const command = await waiting(WAITS);
    const sidecar = processesWith(`TMPDIR=${place.env.TMPDIR}`).find(({ parent }) => parent === command.child.pid);
    process.kill(sidecar?.pid ?? NaN, "SIGKILL");
    expect(await command.ended()).toBe(1);
    const many = String(place.results("r.jsonl").length);
    expect(command.stderr).toBe(
      `skynet-scorer: the sidecar was ended by SIGKILL: ${many} of 53 cases have a result; r.jsonl has ${many} of them\n`,
    );
  });

  it("by its own death leaves no sidecar behind", async () => {
    const command = await waiting(WAITS);
    const started = `TMPDIR=${place.env.TMPDIR}`;
    const own = processesWith(started).length;
    expect(own).toBeGreaterThan(2);
    command.child.kill("SIGKILL");
    expect(await command.ended()).toBe("SIGKILL");
    await until("no process is left", () => processesWith(started).length === 0);
    expect(readdirSync(place.env.TMPDIR)).toEqual([]);
  });

  it("by --max-errors says so, and exits 1", async () => {
    const command = await waiting(`output\nx\nyy\nraise\nwait\n${"raise\n".repeat(50)}`, "--max-errors", "3", "--json");
    expect(await command.ended()).toBe(1);
    const summary = JSON.parse(command.stdout) as { end: string; errors: number };
    expect(summary.end).toBe("too_many_errors");
    expect(summary.errors).toBeGreaterThanOrEqual(3);
    expect(command.stderr).toMatch(
      /^skynet-scorer: stopped at --max-errors: \d+ of 54 cases have a result; r\.jsonl has /,
    );
  });
});

describe("what is wrong from the start", () => {
  it.each([
    [
      ["--prediction-column", "outptu"],
      '--prediction-column outptu: cases.csv has no such column (did you mean "output"?); its columns are: id, output',
    ],
    [["--metric-timeout", "601"], "--metric-timeout 601: expected a number of seconds, over 0 and at most 600"],
    [["--id-column", "id"], 'cases.csv:3: the id "a" is that of line 2 too; ids must differ'],
    [["--connect", "localhost:1"], "--connect localhost:1: give either --connect or --metric, not both"],
    [["--output", "no/where.jsonl"], "--output no/where.jsonl: the file cannot be written: there is no folder no"],
    [["--output", "."], "--output .: the file cannot be written: it is a folder"],
    [["--output", "metric.py"], "--output metric.py: that is the metric; give another file"],
    [["--output", "./cases.csv"], "--output ./cases.csv: that is the file of the cases; give another file"],
    [["--output", "link.py"], "--output link.py: that is the metric; give another file"],
    [["--output", "hard.csv"], "--output hard.csv: that is the file of the cases; give another file"],
    [["--output", "other.py", "--run", "other.py"], "--output other.py: that is the run code; give another file"],
    [["--output", "other.py", "--artifact", "other.py"], "--output other.py: that is the artifact; give another file"],
    [
      ["--output", "other.py", "--prices", "other.py"],
      "--output other.py: that is the file of prices; give another file",
    ],
    [["--metric", "nope.py"], "--metric nope.py: there is no such file"],
    [["--metric", "."], "--metric .: it is a folder"],
    [["--workers", "4", "--max-workers", "2"], "--workers 4: --max-workers 2 allows fewer; leave one of the two out"],
    [
      ["--output-columns", "output"],
      "--prediction-column output: --output-columns names it too; a column is either what is scored or what the metric scores it by",
    ],
    [
      ["--input-columns", "id,output"],
      "--prediction-column output: --input-columns names it too; a column is either what is scored or what the metric scores it by",
    ],
    [["--input-columns", "id,id"], "--input-columns id,id: it names id twice; name it once"],
  ])("%j is told in one line, with exit code 2, and leaves a file of results alone", async (args, message) => {
    place.file("r.jsonl", "old\n");
    place.file("other.py", "other\n");
    symlinkSync("metric.py", join(place.folder, "link.py"));
    linkSync(place.file("cases.csv", ""), join(place.folder, "hard.csv"));
    const { code, stdout, stderr } = await score("id,output\na,x\na,y\n", ["--output", "r.jsonl", ...args]);
    expect([code, stdout, stderr]).toEqual([2, "", `skynet-scorer: ${message}\n`]);
    expect([place.read("r.jsonl"), place.read("other.py"), place.read("metric.py")]).toEqual([
      "old\n",
      "other\n",
      METRIC,
    ]);
  });

  it("standard input is not written over either", async () => {
    place.file("cases.csv", "output\nx\n");
    const command = `"$0" "$1" score --metric metric.py --prediction-column output --cases - --output cases.csv < cases.csv`;
    const { code, stderr } = await runProgram("bash", ["-c", command, process.execPath, BUNDLE], {
      cwd: place.folder,
      env: place.env,
    });
    expect([code, stderr]).toEqual([
      2,
      "skynet-scorer: --output cases.csv: that is the file of the cases; give another file\n",
    ]);
    expect(place.read("cases.csv")).toBe("output\nx\n");
  });

  it.each([
    [
      ["--python", "./nope/bin/python"],
      {},
      "--python ./nope/bin/python: there is no such file; name an interpreter of Python 3.9 or newer",
    ],
    [
      [],
      { SKYNET_SCORER_PYTHON: "no-such-python" },
      "SKYNET_SCORER_PYTHON=no-such-python: there is no such command; name an interpreter of Python 3.9 or newer",
    ],
    [
      ["--python", "metric.py/"],
      {},
      "--python metric.py/: there is no such file; name an interpreter of Python 3.9 or newer",
    ],
    [
      ["--python", "./metric.py"],
      {},
      "--python ./metric.py: it cannot be executed; name an interpreter of Python 3.9 or newer",
    ],
    [
      [],
      { VIRTUAL_ENV: "/nope" },
      "VIRTUAL_ENV=/nope: its interpreter /nope/bin/python cannot be run: there is no such file; activate another environment, or name an interpreter with --python",
    ],
    [
      [],
      { VIRTUAL_ENV: "", PATH: "/nope" },
      "python3: there is no such command on the PATH; install Python 3.9 or newer, activate its virtual environment, or name it with --python",
    ],
  ])("an interpreter that is not there (%j %j) is told with where it was named", async (args, env, message) => {
    const { code, stderr } = await score("output\nx\n", args, { env });
    expect([code, stderr]).toEqual([2, `skynet-scorer: ${message}\n`]);
  });

  it("a missing prediction column is explained", async () => {
    place.file("cases.csv", "output\nx\n");
    const { code, stderr } = await runCommand(["score", "--metric", "metric.py", "--cases", "cases.csv"], {
      cwd: place.folder,
      env: place.env,
    });
    expect(code).toBe(2);
    expect(stderr).toBe(
      "skynet-scorer: --prediction-column: which column holds the output to score? Name it, or give --run run.py and --artifact FILE to make outputs\n",
    );
  });

  it.each([
    ["1 / 0", "ZeroDivisionError: division by zero", "for the traceback: skynet-scorer check --metric metric.py"],
    [
      "import nothing_of_that_name",
      "ModuleNotFoundError: No module named 'nothing_of_that_name'",
      "install it for the Python that loads the file (VERSION), or name another one with --python",
    ],
  ])(
    "a metric that does not load is told with its error, and no results are written: %s",
    async (line, error, advice) => {
      place.file("metric.py", `${line}\n`);
      place.file("r.jsonl", "old\n");
      const { code, stdout, stderr } = await score("output\nx\n", ["--output", "r.jsonl"]);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr.replace(/\(3\.\d+\.\d+\)/, "(VERSION)")).toBe(
        `skynet-scorer: the metric is not loaded: ${error} (metric.py, line 1); ${advice}\n`,
      );
      expect(place.read("r.jsonl")).toBe("old\n");
    },
  );

  it("an interpreter that is none is told with what to do", async () => {
    const { code, stderr } = await score("output\nx\n", ["--python", "/bin/true"]);
    expect([code, stderr]).toEqual([
      1,
      "skynet-scorer: the metric is not loaded: the Python interpreter /bin/true exited with code 0 before it could load anything: it printed nothing; look whether it is Python 3.9 or newer, or name another one with --python\n",
    ]);
  });

  it("a sidecar that is not there is told", async () => {
    place.file("cases.csv", "output\nx\n");
    const { code, stderr } = await runCommand(
      [
        "score",
        "--connect",
        `unix:${join(place.folder, "none")}`,
        "--cases",
        "cases.csv",
        "--prediction-column",
        "output",
      ],
      { cwd: place.folder, env: place.env },
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^skynet-scorer: no sidecar answers at unix:.*; start one with: skynet-scorer serve/);
  });
});
