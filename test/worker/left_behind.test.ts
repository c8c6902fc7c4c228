import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PoolOptions } from "../../src/worker/types.js";
import { caseOf, isAlive, pythonProcesses, RealPool, until } from "./real_pool.js";

let folder: string;
let opened: RealPool[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skynet-test-"));
  opened = [];
});

afterEach(async () => {
  for (const pool of opened) await pool.close();
  for (const pid of daemons()) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  rmSync(folder, { recursive: true });
  await until(() => pythonProcesses().length === 0, "all templates to be reaped");
});

/** What a metric runs to start a process in a session of its own, which starts another one in a session of its own. */
const DAEMON = `
import subprocess, sys, time
def daemon(**options):
    inner = "import os, time; print(os.getpid(), file=open(%r, 'a')); time.sleep(1000)" % PIDS
    outer = "import os, subprocess, sys, time\\n"
    outer += "subprocess.Popen([sys.executable, '-c', %r], start_new_session=True)\\n" % inner
    outer += inner
    subprocess.Popen([sys.executable, "-c", outer], start_new_session=True, **options)
    open(PIDS, "a").close()
    while len(open(PIDS).read().split()) < 2:
        time.sleep(0.01)
`;

/** A metric that can call `daemon`. */
function metricFile(source: string): string {
  const path = join(folder, "metric.py");
  writeFileSync(path, `PIDS = ${JSON.stringify(join(folder, "pids"))}\n${DAEMON}\n${source}`);
  return path;
}

/** Their ids. */
function daemons(): number[] {
  const file = join(folder, "pids");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter(Boolean).map(Number) : [];
}

async function open(source: string, options: Partial<PoolOptions> = {}): Promise<RealPool> {
  const pool = await RealPool.open(metricFile(source), options);
  opened.push(pool);
  return pool;
}

async function gone(): Promise<void> {
  const started = daemons();
  expect(started.length).toBeGreaterThanOrEqual(2);
  await until(() => !started.some(isAlive), `the processes ${started.join(", ")} to be gone`);
}

const SCORE = "def score(input, output):\n    return 1.0, {'feedback': ''}\n";

describe.skipIf(process.platform !== "linux")("what a metric has started in sessions of its own", () => {
  test("goes with the template that must not fork for it", async () => {
    const pool = await open(`daemon()\n${SCORE}`);
    expect(pool.metric.startMethod).toBe("spawn");
    await gone();
  });

  test.each([
    ["an import that raises", "daemon()\n1/0"],
    ["a file without its function", "daemon()"],
    ["an import that ends the process", "daemon()\nimport os\nos._exit(3)"],
    ["an import that kills the process", "daemon()\nimport os, signal\nos.kill(os.getpid(), 9)"],
  ])("goes with %s", async (_, source) => {
    expect((await open(source)).metric.problems).toHaveLength(1);
    await gone();
  });

  test.each([
    ["its environment", "daemon()"],
    ["an empty environment", "daemon(env={})"],
    [
      "signals that it ignores",
      "import signal\nfor number in (1, 2, 3, 15, 17):\n    signal.signal(number, signal.SIG_IGN)\ndaemon()",
    ],
  ])("goes with a load that takes too long: %s", async (_, source) => {
    const { metric } = await open(`${source}\ntime.sleep(1000)\n${SCORE}`, { loadTimeoutMs: 2000 });
    expect(metric.problems[0]?.message).toContain("did not load within 2 s");
    await gone();
  });

  test("goes with a load that is given up", async () => {
    const stop = new AbortController();
    const opening = open(`daemon()\ntime.sleep(1000)\n${SCORE}`, { stopLoading: stop.signal });
    await until(() => daemons().length >= 2, "the processes");
    stop.abort();
    await opening;
    await gone();
  });

  test("goes with a template that is killed", async () => {
    const pool = await open("def score(input, output):\n    daemon()\n    return 1.0, {'feedback': ''}\n");
    const worker = await pool.startOne();
    await pool.score(worker, [caseOf("a")]);
    const started = daemons();
    expect(started.every(isAlive)).toBe(true);
    const [template] = pythonProcesses();
    process.kill(Number(template), "SIGKILL");
    await gone();
  });
});
