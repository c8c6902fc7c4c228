import { expect, it } from "vitest";

import { WorkerCount } from "../../src/scoring/worker_count.js";

it("begins with one a core", () => {
  expect(new WorkerCount(4, 64, undefined).target()).toBe(4);
});

it("never exceeds the maximum, not even at the beginning", () => {
  const count = new WorkerCount(8, 3, undefined);
  expect(count.target()).toBe(3);
  count.learn({ wallMs: 1000, busyMs: 0 });
  expect(count.target()).toBe(3);
});

it("stays one a core for a metric that computes, although it waited for a core", () => {
  const count = new WorkerCount(2, 64, undefined);
  count.learn({ wallMs: 1000, busyMs: 960 });
  expect(count.target()).toBe(2);
});

it("grows by wall time over busy time", () => {
  const count = new WorkerCount(2, 64, undefined);
  count.learn({ wallMs: 1000, busyMs: 100 });
  expect(count.target()).toBe(20);
});

it("learns from cases that are still running", () => {
  const count = new WorkerCount(2, 64, undefined);
  count.suppose({ wallMs: 50, busyMs: 0.4 });
  expect(count.target()).toBe(64);
  count.suppose({ wallMs: 50, busyMs: 50 });
  expect(count.target()).toBe(2);
});

it("forgets", () => {
  const count = new WorkerCount(2, 64, undefined);
  count.learn({ wallMs: 1000, busyMs: 10 });
  for (let chunk = 0; chunk < 100; chunk++) count.learn({ wallMs: 100, busyMs: 100 });
  expect(count.target()).toBe(2);
});

it("is what the user said", () => {
  const count = new WorkerCount(2, 64, 7);
  count.learn({ wallMs: 1000, busyMs: 0 });
  expect([count.first, count.target()]).toEqual([7, 7]);
});

it("watches what running cases use until the metric tells by a call that it waits", () => {
  const count = new WorkerCount(2, 64, undefined);
  count.suppose({ wallMs: 50, busyMs: 50 });
  expect([count.isWatching, count.target()]).toEqual([true, 2]);
  count.asks();
  expect([count.isWatching, count.target()]).toEqual([false, 64]);
});

it("watches a metric that may ask a model and has not yet", () => {
  expect(new WorkerCount(2, 64, undefined, true).isWatching).toBe(true);
  expect(new WorkerCount(2, 64, 7).isWatching).toBe(false);
});
