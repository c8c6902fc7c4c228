import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { Case } from "../../src/scoring/case.js";
import { openScorer } from "../../src/scoring/open_scorer.js";
import type { CaseResult } from "../../src/scoring/result.js";
import type { Scorer } from "../../src/scoring/scorer.js";
import type { LoadedMetric, OpenPool } from "../../src/worker/types.js";
import { LOADED_METRIC } from "./fake_messages.js";
import { FakePool } from "./fake_pool.js";

const BAD: LoadedMetric = {
  ...LOADED_METRIC,
  problems: [{ step: "metric_file", message: "SyntaxError: '(' was never closed (metric.py, line 1)", traceback: "…" }],
};
const OPTIONS = {
  metric: "metric.py",
  python: undefined,
  startMethod: "auto",
  workers: undefined,
  maxWorkers: 64,
  metricTimeoutMs: 60_000,
  loadTimeoutMs: 60_000,
  seed: undefined,
  maxRowBytes: 1 << 20,
  run: undefined,
} as const;
const LOG = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
const NO_MODEL = { hasModel: false, complete: () => Promise.reject(new Error("no test here asks a model")) } as const;
const never = new AbortController().signal;

/** Opens a scorer whose loads find these metrics, one after the other. */
/** What a load finds, at once or in its own time. */
type Load = LoadedMetric | ((stop: AbortSignal | undefined) => Promise<LoadedMetric>);

async function open(...loads: Load[]): Promise<{ scorer: Scorer; pools: FakePool[] }> {
  const pools: FakePool[] = [];
  const openPool: OpenPool = async ({ stopLoading }, listener) => {
    const load = loads.shift() ?? LOADED_METRIC;
    const metric = typeof load === "function" ? await load(stopLoading) : load;
    const pool = metric.problems.length > 0 ? undefined : new FakePool(listener);
    if (pool !== undefined) pools.push(pool);
    return { metric, pool };
  };
  return { scorer: await openScorer(OPTIONS, NO_MODEL, LOG, openPool), pools };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const slow = (index: number, ms: number): Case => ({
  id: "",
  index,
  input: bytes("{}"),
  output: bytes(JSON.stringify({ ms })),
  expected: undefined,
  observationId: "",
});

async function* one(item: Case): AsyncGenerator<readonly Case[]> {
  await Promise.resolve();
  yield [item];
}

async function all(results: AsyncIterable<readonly CaseResult[]>): Promise<CaseResult[]> {
  const taken: CaseResult[] = [];
  for await (const batch of results) taken.push(...batch);
  return taken;
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("is ready once a worker stands, and says so", async () => {
  const { scorer } = await open();
  const changes: boolean[] = [];
  scorer.onReadyChange((ready) => changes.push(ready));
  expect(scorer.isReady()).toBe(false);
  await vi.advanceTimersByTimeAsync(20);
  expect([scorer.isReady(), changes]).toEqual([true, [true]]);
  await scorer.close(0);
  expect([scorer.isReady(), changes]).toEqual([false, [true, false]]);
});

it("refuses calls where the metric did not load, with the reason", async () => {
  const { scorer } = await open(BAD);
  expect(scorer.describe()).toMatchObject({ loaded: false, loadError: BAD.problems[0]?.message });
  expect(() => scorer.open(never)).toThrowError(
    expect.objectContaining({
      code: "metric_not_loaded",
      message: "the metric is not loaded: SyntaxError: '(' was never closed (metric.py, line 1)",
    }) as Error,
  );
});

it("lets a call keep the metric that it began with across a reload", async () => {
  const { scorer, pools } = await open(LOADED_METRIC, { ...LOADED_METRIC, fingerprint: "f2" });
  await vi.advanceTimersByTimeAsync(20);
  const before = scorer.open(never);
  const results = all(before.score(one(slow(0, 1000))));
  await vi.advanceTimersByTimeAsync(100);
  await scorer.reload();
  expect(before.metric.fingerprint).toBe("f1");
  const closed = vi.spyOn(pools[0] ?? expect.fail(), "close");
  expect(scorer.open(never).metric.fingerprint).toBe("f2");
  expect(closed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2000);
  expect(await results).toHaveLength(1);
  expect(closed).toHaveBeenCalledOnce();
});

it("refuses new calls after a reload that failed, and takes them after one that worked", async () => {
  const { scorer } = await open(LOADED_METRIC, BAD, LOADED_METRIC);
  await scorer.reload();
  expect(() => scorer.open(never)).toThrow("the metric is not loaded");
  await scorer.reload();
  expect(scorer.open(never).metric.loaded).toBe(true);
});

it("finishes running cases when it closes, and takes no new calls meanwhile", async () => {
  const { scorer } = await open();
  await vi.advanceTimersByTimeAsync(20);
  const results = all(scorer.open(never).score(one(slow(0, 1000))));
  await vi.advanceTimersByTimeAsync(100);
  let closed = false;
  const closing = scorer.close(10_000).then(() => (closed = true));
  await vi.advanceTimersByTimeAsync(100);
  expect(closed).toBe(false);
  expect(() => scorer.open(never)).toThrow("shutting down");
  await vi.advanceTimersByTimeAsync(1000);
  await closing;
  expect(await results).toHaveLength(1);
});

it("gives up a load that is under way when it closes, and keeps describing what it had", async () => {
  let stop: AbortSignal | undefined;
  const { scorer } = await open(LOADED_METRIC, (signal) => {
    stop = signal;
    return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(BAD)));
  });
  const reloaded = scorer.reload();
  await vi.advanceTimersByTimeAsync(0);
  expect(stop?.aborted).toBe(false);
  await scorer.close(10_000);
  expect(stop?.aborted).toBe(true);
  expect(await reloaded).toMatchObject({ loaded: true, fingerprint: "f1" });
});

it("ends what does not finish in time", async () => {
  const { scorer } = await open();
  await vi.advanceTimersByTimeAsync(20);
  const results = all(scorer.open(never).score(one(slow(0, 1e9))));
  const failed = expect(results).rejects.toMatchObject({ code: "shutting_down" });
  await vi.advanceTimersByTimeAsync(100);
  const closing = scorer.close(500);
  await vi.advanceTimersByTimeAsync(500);
  await closing;
  await failed;
});
