import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";

import { casesOf, tally } from "./cases.js";
import { fixture, test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

describe("the number of workers", () => {
  test("grows with a metric that waits, up to the most that is allowed", async ({ start }) => {
    const sidecar = await start({ metric: fixture("sleeps_200_ms.py"), args: ["--max-workers", String(MOST)] });
    let most = 0;

    const results = await sidecar.client.score(casesOf(512, "fine"), {
      onResponse: () => (most = Math.max(most, sidecar.workers().length)),
    });

    expect(tally(results)).toEqual({ SCORE: 512 });
    expect(most).toBe(MOST);
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

/** Many more than there are cores, and few enough for the memory of a small machine. */
const MOST = 32;
const EXAMPLE = fileURLToPath(new URL("../../examples/support-tickets/metric.py", import.meta.url));

/** Workers that run or wait for a core at this moment. */
function runnable(sidecar: Sidecar): number {
  return sidecar.workers().filter(({ state }) => state === "R").length;
}
