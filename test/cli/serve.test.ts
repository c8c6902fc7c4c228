import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { connect } from "../../src/cli/client.js";
import { ROOT, runCommand } from "../e2e/command.js";
import { processesWith } from "../e2e/processes.js";
import { until, within } from "../e2e/until.js";
import { type RunningCommand, Workplace } from "./command_fixture.js";

const GOOD = 'def score(input, output):\n    return 1.0, {"feedback": "Fine."}\n';
const BAD = "def score(input, output:\n";

let place: Workplace;
let metric: string;
beforeEach(() => {
  place = new Workplace();
  metric = place.file("metric.py", GOOD);
});
afterEach(async () => {
  await place.clear();
});

function serve(...args: string[]): RunningCommand {
  return place.start(["serve", "--metric", metric, "--listen", `unix:${join(place.folder, "s")}`, ...args]);
}

async function stop(command: RunningCommand): Promise<void> {
  command.child.kill("SIGTERM");
  expect(await command.ended()).toBe(0);
}

describe("the first line", () => {
  it("says where the sidecar is and what it has loaded, and nothing else is on standard output", async () => {
    const command = serve();
    expect(await command.firstLine()).toEqual({
      addresses: [`unix:${join(place.folder, "s")}`],
      pid: command.child.pid,
      protocol: "skynet.scoring.v1",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
      metric_fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      metric_loaded: true,
    });
    await stop(command);
    expect(command.stdout.split("\n")).toHaveLength(2);
    for (const line of command.stderr.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
  });

  it("says that the metric did not load, and why; the sidecar serves all the same", async () => {
    writeFileSync(metric, BAD);
    const command = serve();
    expect(await command.firstLine()).toMatchObject({
      metric_loaded: false,
      metric_fingerprint: "",
      metric_error: expect.stringContaining("SyntaxError") as string,
    });
    await stop(command);
    expect(command.stderr).toContain("was never closed (metric.py, line 1)");
  });
});

describe("stopping", () => {
  it("happens on SIGINT too", async () => {
    const command = serve();
    await command.firstLine();
    command.child.kill("SIGINT");
    expect(await command.ended()).toBe(0);
  });

  it("happens while the metric loads", async () => {
    writeFileSync(metric, `open("loading", "w").close()\nimport time\ntime.sleep(1000)\n${GOOD}`);
    const command = serve();
    await until("the metric loads", () => tryRead("loading"));
    await stop(command);
  });

  it("happens at once at the second signal", async () => {
    writeFileSync(
      metric,
      `import time\ndef score(input, output):\n    open("scoring", "w").close()\n    time.sleep(1000)\n`,
    );
    const command = serve("--drain-timeout", "600");
    await command.firstLine();
    const client = place.start([
      ...["score", "--connect", `unix:${join(place.folder, "s")}`, "--prediction-column", "output"],
      ...["--cases", place.file("cases.csv", "output\n1\n")],
    ]);
    await until("the metric runs", () => tryRead("scoring"));
    command.child.kill("SIGTERM");
    await until("the first signal was seen", () => command.stderr.includes("stopping"));
    command.child.kill("SIGTERM");
    expect(await command.ended()).toBe(130);
    expect(await client.ended()).toBe(1);
  });

  it("happens when standard input ends, where that was asked for", async () => {
    const command = serve("--stop-with-stdin");
    expect(await command.firstLine()).toMatchObject({ metric_loaded: true });
    command.child.stdin?.end();
    expect(await command.ended()).toBe(0);
  });
});

describe("reloading", () => {
  async function fingerprint(): Promise<string> {
    const client = connect(`unix:${join(place.folder, "s")}`);
    try {
      return (await client.describe()).fingerprint;
    } finally {
      client.close();
    }
  }

  it.each([
    ["on SIGHUP", [], (command: RunningCommand) => command.child.kill("SIGHUP")],
    ["on a change, with --watch", ["--watch"], () => true],
  ])("happens %s", async (_when, args, ask) => {
    const command = serve(...args);
    const { metric_fingerprint: before } = await command.firstLine();
    writeFileSync(metric, GOOD.replace("Fine", "Good"));
    ask(command);
    await until("another metric is loaded", async () => (await fingerprint()) !== before);
    writeFileSync(metric, BAD);
    ask(command);
    await until("the fault is logged", () => command.stderr.includes("the metric does not load: SyntaxError"));
    await stop(command);
  });
});

it("neither waits for a reader of its log nor keeps it all, and ends when told to", async () => {
  writeFileSync(metric, `def score(input, output):\n    print("x" * 50_000)\n    return 1.0, {"feedback": ""}\n`);
  const command = spawn(
    process.execPath,
    [join(ROOT, "dist/skynet-scorer.js"), "serve", `--metric=${metric}`, `--listen=unix:${join(place.folder, "s")}`],
    { env: { ...process.env, ...place.env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  // Nobody reads standard error: it fills up.
  command.stderr.pause();
  await within("the first line", once(command.stdout, "data"));
  const scoring = place.start([
    ...["score", "--connect", `unix:${join(place.folder, "s")}`, "--prediction-column", "output", "--json"],
    ...["--cases", place.file("cases.csv", `output\n${"1\n".repeat(1000)}`)],
  ]);
  expect(await scoring.ended()).toBe(0);
  expect(JSON.parse(scoring.stdout)).toMatchObject({ results: 1000, errors: 0 });
  const exit = once(command, "exit");
  command.kill("SIGTERM");
  expect(await within("the end of the sidecar", exit)).toEqual([0, null]);
  command.stderr.destroy();
});

it("refuses to start without a metric, before anything else", async () => {
  const command = place.start(["serve"]);
  expect(await command.ended()).toBe(2);
  expect(command.stderr).toBe("skynet-scorer: --metric: serve needs a metric; give it as --metric metric.py\n");
  expect(processesWith(`TMPDIR=${place.env.TMPDIR}`)).toEqual([]);
});

it("says so where an address is taken", async () => {
  const first = serve();
  await first.firstLine();
  const second = serve();
  expect(await second.ended()).toBe(1);
  expect(second.stderr).toBe(
    `skynet-scorer: cannot listen on unix:${join(place.folder, "s")}: another process listens there; stop it, or give another path\n`,
  );
  await stop(first);
});

it.each([
  ["192.0.2.1:0", "this machine has no such address; give one of its own, such as localhost"],
  ["unix:/nope/s.sock", "there is no folder /nope; make it, or give another path"],
  ["nothing.invalid:0", "no host of that name is known; give a name or an address of this machine, such as localhost"],
])("says in one line, before an interpreter is started, why it cannot listen on %s", async (address, why) => {
  writeFileSync(metric, `open("loaded", "w").close()\n${GOOD}`);
  const command = place.start(["serve", "--metric", metric, "--listen", address]);
  expect(await command.ended()).toBe(1);
  expect(command.stderr).toBe(`skynet-scorer: cannot listen on ${address}: ${why}\n`);
  expect(tryRead("loaded")).toBe(false);
});

it.each([
  [["serve", "--metric", "metric.py"]],
  [["check", "--metric", "metric.py"]],
  [["score", "--metric", "metric.py", "--cases", "cases.csv", "--prediction-column", "output"]],
])("%j says in one line that the temporary folder is not there", async (args) => {
  place.file("cases.csv", "output\n1\n");
  const { code, stderr } = await runCommand(args, { cwd: place.folder, env: { TMPDIR: "/nope" } });
  expect([code, stderr]).toEqual([
    2,
    "skynet-scorer: TMPDIR=/nope: there is no such folder; set TMPDIR to a folder that exists and can be written\n",
  ]);
});

function tryRead(name: string): boolean {
  try {
    place.read(name);
    return true;
  } catch {
    return false;
  }
}
