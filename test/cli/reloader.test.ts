import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Reloader, watchMetric } from "../../src/cli/reloader.js";
import type { MetricDescription } from "../../src/scoring/scorer.js";
import type { Log } from "../../src/worker/log.js";

const LOADED = { loaded: true, fingerprint: "f1", loadMs: 1, loadError: "" } as MetricDescription;

function memoryLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const write = (level: string) => (_fields: object, message: string) => void lines.push(`${level}: ${message}`);
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

describe("reloading", () => {
  it("loads once more after a load during which it was asked again, however often", async () => {
    const log = memoryLog();
    const loads: ((metric: MetricDescription) => void)[] = [];
    const reloader = new Reloader(() => new Promise((resolve) => loads.push(resolve)), log);
    for (let time = 0; time < 5; time += 1) reloader.ask("SIGHUP");
    expect(loads).toHaveLength(1);
    loads[0]?.(LOADED);
    await vi.waitFor(() => {
      expect(loads).toHaveLength(2);
    });
    loads[1]?.({ ...LOADED, loaded: false, loadError: "SyntaxError (metric.py, line 1)" });
    await vi.waitFor(() => {
      expect(log.lines).toEqual([
        "info: the metric was loaded again",
        "error: the metric does not load: SyntaxError (metric.py, line 1)",
      ]);
    });
    expect(loads).toHaveLength(2);
  });

  it("says so where loading fails, and can be asked again", async () => {
    const log = memoryLog();
    const reload = vi.fn(() => Promise.reject(new Error("no memory")));
    const reloader = new Reloader(reload, log);
    for (const times of [1, 2]) {
      reloader.ask("SIGHUP");
      await vi.waitFor(() => {
        expect(log.lines).toHaveLength(times);
      });
    }
    expect(log.lines[0]).toBe("error: the metric could not be loaded again");
  });
});

describe("watching", () => {
  let folder: string;
  let metric: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "skynet-watch-"));
    metric = join(folder, "metric.py");
    writeFileSync(metric, "1");
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it.each<[string, () => void]>([
    ["the file is written", () => writeFileSync(metric, "2")],
    [
      "an editor puts another in its place",
      () => {
        writeFileSync(join(folder, "metric.py~"), "2");
        renameSync(join(folder, "metric.py~"), metric);
      },
    ],
    ["a module beside it is written", () => writeFileSync(join(folder, "helper.py"), "2")],
  ])("calls back once when %s", async (_what, change) => {
    let times = 0;
    const watcher = watchMetric(metric, memoryLog(), () => (times += 1));
    try {
      change();
      change();
      await vi.waitFor(() => {
        expect(times).toBeGreaterThan(0);
      }, 10_000);
    } finally {
      watcher.close();
    }
    expect(times).toBe(1);
  });

  it("does not mind other files", async () => {
    const reasons: string[] = [];
    const watcher = watchMetric(metric, memoryLog(), () => reasons.push("changed"));
    try {
      writeFileSync(join(folder, "notes.txt"), "x");
      // Once the later change has been told, the earlier one would have been.
      writeFileSync(metric, "2");
      await vi.waitFor(() => {
        expect(reasons).toEqual(["changed"]);
      }, 10_000);
    } finally {
      watcher.close();
    }
  });
});
