import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";

import { caseOf, casesOf, tally } from "./cases.js";
import { cpuMs } from "./processes.js";
import { test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

describe("the number of workers", () => {
  test("grows with a metric that waits: 1,024 cases of 200 ms take less than 4.5 s", async ({ start }) => {
    const { client } = await start("sleeps_200_ms.py");
    const began = performance.now();

    const results = await client.score(casesOf(1024, "fine"));

    expect(performance.now() - began).toBeLessThan(4500);
    expect(tally(results)).toEqual({ SCORE: 1024 });
  });

  test("stays at the number of cores for a metric that computes", async ({ start }) => {
    const sidecar = await start("computes_5_ms.py");
    let most = 0;

    const results = await sidecar.client.score(casesOf(400, "fine"), {
      onResponse: () => (most = Math.max(most, runnable(sidecar))),
    });

    expect(tally(results)).toEqual({ SCORE: 400 });
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(availableParallelism());
    expect(sidecar.workers().length).toBeLessThanOrEqual(availableParallelism());
  });

  test("can be fixed", async ({ start }) => {
    const sidecar = await start({ metric: EXAMPLE, args: ["--workers", "3"] });

    await until("three workers stand", () => sidecar.workers().length === 3);
    expect((await sidecar.client.describeMetric()).workers).toBe(3);
  });
});

describe("from the start to the first score of the example", () => {
  test("no more passes than a person would call at once", async ({ start }) => {
    const began = performance.now();
    const sidecar = await start({ metric: EXAMPLE });
    const expected = { category: "billing", priority: "high" };

    const results = await sidecar.client.score([
      caseOf(expected, { subject: "Charged twice", message: "…" }, expected),
    ]);

    expect(tally(results)).toEqual({ SCORE: 1 });
    // Generous, for a machine that is busy with other tests; `npm run bench` has the promise itself.
    expect(performance.now() - began).toBeLessThan(5000);
    expect(cpuMs(sidecar.pid)).toBeLessThan(3000);
  });
});

const EXAMPLE = fileURLToPath(new URL("../../examples/support-tickets/metric.py", import.meta.url));

/** Workers that run or wait for a core at this moment. */
function runnable(sidecar: Sidecar): number {
  return sidecar.workers().filter(({ state }) => state === "R").length;
}
