import { join } from "node:path";
import { describe, expect } from "vitest";

import { caseOf, casesOf, failed, plain, tally } from "./cases.js";
import { cpuMs } from "./processes.js";
import { fixture, test, type Workspace } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

describe("twenty SIGKILLs at random under load", () => {
  test("cost only cases that were in hand, and no case is run twice", async ({ start, workspace }) => {
    const sidecar = await start("notes_and_computes_1_ms.py");
    const notes = join(workspace.path, "notes");
    const cases = Array.from({ length: 4000 }, (_, index) => ({ ...caseOf(index, { notes }), id: `case-${index}` }));
    const kills = new Set<number>();
    const nextKillAt = (): number => 190 * kills.size + Math.floor(Math.random() * 190);
    let at = nextKillAt();

    const results = await sidecar.client.score(cases, {
      onResponse: (_, done) => {
        if (kills.size === 20 || done < at) return;
        const victim = pick(sidecar.workers().filter(({ pid }) => !kills.has(pid)))?.pid;
        if (victim === undefined) return;
        process.kill(victim, "SIGKILL");
        kills.add(victim);
        at = nextKillAt();
      },
    });

    expect(kills.size).toBe(20);
    const { SCORE = 0, METRIC_CRASHED = 0, ...others } = tally(results);
    expect(others).toEqual({});
    expect(SCORE + METRIC_CRASHED).toBe(4000);
    expect(METRIC_CRASHED).toBeGreaterThan(0);
    expect(METRIC_CRASHED).toBeLessThanOrEqual(20);
    const begun = workspace.lines("notes").map((line) => line.split(" ").map(Number) as [pid: number, index: number]);
    expect(new Set(begun.map(([, index]) => index)).size).toBe(begun.length);
    const lastOf = new Map(begun);
    const pidOf = new Map(begun.map(([pid, index]) => [index, pid]));
    for (const result of results.filter(({ outcome }) => outcome.case === "error")) {
      // Without a note the process was killed before the metric's first line.
      const pid = pidOf.get(result.index);
      if (pid !== undefined) expect([kills.has(pid), lastOf.get(pid)]).toEqual([true, result.index]);
      const message = expect.stringContaining("killed by SIGKILL") as string;
      expect(plain(result)).toEqual(failed(result.index, "METRIC_CRASHED", message, `case-${result.index}`));
    }
  });
});

describe("one case that never returns among 1,000 good ones", () => {
  test.for([
    ["a loop in Python", "loops_forever.py"],
    ["a sleep", "sleeps_forever.py"],
    ["a call in C that holds the interpreter lock", "backtracks_forever.py"],
  ] as const)("%s: is the one that times out", async ([, metric], { start }) => {
    const { client } = await start({ metric: fixture(metric), args: ["--metric-timeout", "2"] });
    const cases = [...casesOf(500, "fine"), caseOf("hang"), ...casesOf(500, "fine")];

    const results = await client.score(cases);

    expect(tally(results)).toEqual({ METRIC_TIMEOUT: 1, SCORE: 1000 });
    expect(results[500]?.outcome.case).toBe("error");
  });
});

describe("kill -9 of the sidecar", () => {
  test.for([
    ["idle forks", "exact_match.py", "fork", isIdle],
    ["idle interpreters", "exact_match.py", "spawn", isIdle],
    ["forks that wait", "waits_for_file.py", "fork", hasTold],
    ["forks that hold the interpreter lock", "backtracks_forever.py", "fork", computes],
    ["interpreters that hold the lock", "backtracks_forever.py", "spawn", computes],
    ["forks that ignore every interruption, and their children", "ignores_interrupts.py", "fork", hasChildren],
    ["what a metric left in the background", "leaves_background_process.py", "fork", hasChildren],
  ] as const)("leaves nothing of %s", async ([, metric, method, hasBegun], { start, workspace }) => {
    const sidecar = await start({ metric: fixture(metric), args: ["--workers", "2", "--start-method", method] });
    const [file, began, go] = ["pids", "began", "never"].map((name) => join(workspace.path, name)) as [
      string,
      string,
      string,
    ];
    const output = metric === "waits_for_file.py" ? "wait" : "hang";
    const call = sidecar.client.score(casesOf(2, output, "case", { file, began, go }));
    call.catch(() => undefined);
    await until("both workers have begun", () => sidecar.workers().length >= 2 && hasBegun(sidecar, workspace));
    expect(sidecar.temporaryFiles()).toHaveLength(1);

    sidecar.signal("SIGKILL");

    await sidecar.nothingLeft(2000);
    expect(await sidecar.exited()).toEqual([null, "SIGKILL"]);
  });

  test.for([
    ["", 'subprocess.run(["sleep", "1000"])'],
    [", nor what that started in a session of its own", 'subprocess.run(["sleep", "1000"], start_new_session=True)'],
  ] as const)("leaves nothing of a metric that is still loading%s", async ([, load], { start, workspace }) => {
    const metric = workspace.write("metric.py", "def score(input, output): return 1.0, {'feedback': 'Fine.'}\n");
    const sidecar = await start({ metric });
    workspace.write("metric.py", `import subprocess\n${load}\n`);
    sidecar.signal("SIGHUP");
    await until("the second load runs", () => children(sidecar) === 1);

    sidecar.signal("SIGKILL");

    await sidecar.nothingLeft(2000);
    expect(await sidecar.exited()).toEqual([null, "SIGKILL"]);
  });
});

function pick<T>(items: readonly T[]): T | undefined {
  return items[Math.floor(Math.random() * items.length)];
}

function isIdle(): boolean {
  return true;
}

/** Each worker's case has said that it began. */
function hasTold(_: Sidecar, workspace: Workspace): boolean {
  return workspace.lines("began").length === 2;
}

/** Far more than a worker's own start takes. */
function computes(sidecar: Sidecar): boolean {
  return sidecar.workers().filter(({ pid }) => cpuMs(pid) > 500).length === 2;
}

function hasChildren(sidecar: Sidecar): boolean {
  return children(sidecar) === 2;
}

function children(sidecar: Sidecar): number {
  return sidecar.processes().filter(({ command }) => command.startsWith("sleep")).length;
}
