import { Big } from "big.js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { NO_TOKENS } from "../../src/model/token_usage.js";
import type { Case } from "../../src/scoring/case.js";
import { openScorer } from "../../src/scoring/open_scorer.js";
import type { CaseResult } from "../../src/scoring/result.js";
import type { Scorer } from "../../src/scoring/scorer.js";
import type { LoadedMetric, OpenPool, PoolOptions } from "../../src/worker/types.js";
import { LOADED_METRIC } from "./fake_messages.js";
import { FakePool } from "./fake_pool.js";
import { FakeRunPool, LEAVING_MS, type RunBehaviour } from "./fake_run_pool.js";

const RUN: LoadedMetric = { ...LOADED_METRIC, file: "run.py" };
const LOG = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
const NO_MODEL = { hasModel: false, complete: () => Promise.reject(new Error("no test here asks a model")) } as const;
const GATEWAY = "http://127.0.0.1:4000/v1";
const never = new AbortController().signal;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (payload: Uint8Array | undefined): string => new TextDecoder().decode(payload);

interface Setup {
  readonly maxRuns?: number;
  readonly run?: LoadedMetric;
  readonly metric?: LoadedMetric;
}

/** A scorer with a fake metric and fake run code, both ready. */
async function open({ maxRuns = 2, run = RUN, metric = LOADED_METRIC }: Setup = {}) {
  const metricPools: FakePool[] = [];
  const runPools: FakeRunPool[] = [];
  const opened: PoolOptions[] = [];
  const openPool: OpenPool = (options, listener) => {
    opened.push(options);
    const found = options.kind === "run" ? run : metric;
    if (found.problems.length > 0) return Promise.resolve({ metric: found, pool: undefined });
    const pool = options.kind === "run" ? new FakeRunPool(listener) : new FakePool(listener);
    if (pool instanceof FakeRunPool) runPools.push(pool);
    else metricPools.push(pool);
    return Promise.resolve({ metric: found, pool });
  };
  const options = {
    metric: "metric.py",
    python: undefined,
    startMethod: "auto",
    workers: 2,
    maxWorkers: 64,
    metricTimeoutMs: 60_000,
    loadTimeoutMs: 60_000,
    seed: undefined,
    maxRowBytes: 1000,
    run: {
      file: "run.py",
      timeoutMs: 1000,
      maxRuns,
      environment: { OPENAI_API_KEY: undefined },
      gatewayUrl: () => GATEWAY,
    },
  } as const;
  const scorer = await openScorer(options, NO_MODEL, LOG, openPool);
  await vi.advanceTimersByTimeAsync(20);
  const lastPool = () => runPools.at(-1) ?? expect.fail("there is no pool of runs");
  return { scorer, runs: lastPool, runPools, metricPools, opened };
}

function cases(...behaviours: RunBehaviour[]): Case[] {
  return behaviours.map((behaviour, index) => ({
    id: `c${index}`,
    index,
    input: bytes(`{"n":${index}}`),
    output: undefined,
    expected: bytes('{"label":1}'),
    observationId: "",
    artifact: bytes(JSON.stringify(behaviour)),
  }));
}

async function score(scorer: Scorer, batch: readonly Case[], signal = never): Promise<CaseResult[]> {
  async function* one() {
    await Promise.resolve();
    yield batch;
  }
  const results: CaseResult[] = [];
  for await (const ready of scorer.open(signal).score(one())) results.push(...ready);
  return results.sort((a, b) => a.index - b.index);
}

/** Scores and lets simulated time pass until all is done. */
async function scored(scorer: Scorer, batch: readonly Case[], ms = 10_000): Promise<CaseResult[]> {
  const results = score(scorer, batch);
  await vi.advanceTimersByTimeAsync(ms);
  return await results;
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("a case without output", () => {
  it("is run, and what the run returned is scored; the result says both, and what was measured", async () => {
    const { scorer, runs } = await open();
    const [result] = await scored(scorer, cases({ ms: 300, output: '{"ms":7}' }));
    expect(result).toMatchObject({ id: "c0", index: 0, isRun: true, metricMs: 7, outcome: { kind: "score" } });
    expect(text(result?.output)).toBe('{"ms":7}');
    expect(result?.observation).toMatchObject({ runMs: 300, usage: { calls: 0, cost: { usd: new Big(0) } } });
    const [worker] = runs().ran;
    expect(worker?.cases.map(({ input, expected, observation }) => [text(input), expected, observation])).toEqual([
      ['{"n":0}', undefined, undefined],
    ]);
    await scorer.close(0);
  });

  it("hands the metric what was measured", async () => {
    const { scorer, metricPools } = await open();
    const given = vi.spyOn(metricPools[0]?.workers.values().next().value ?? expect.fail(), "run");
    await scored(scorer, cases({ ms: 20 }));
    const observation = text(given.mock.calls[0]?.[0][0]?.observation);
    expect(JSON.parse(observation)).toMatchObject({ run_ms: 20, cost_usd: 0, run_not_measured_reason: "" });
    await scorer.close(0);
  });

  it("is run next to cases that bring theirs, whichever comes first", async () => {
    const { scorer, runs } = await open();
    const [bare] = cases({ ms: 50 });
    const own: Case = { ...(bare ?? expect.fail()), id: "own", index: 1, output: bytes('{"ms":1}') };
    const results = await scored(scorer, [bare ?? expect.fail(), own]);
    expect(
      results.map(({ isRun, output, observation }) => [isRun, output !== undefined, observation !== undefined]),
    ).toEqual([
      [true, true, true],
      [undefined, false, false],
    ]);
    expect(runs().ran).toHaveLength(1);
    await scorer.close(0);
  });

  it("is that case's fault where nothing can be run", async () => {
    const { scorer, runs } = await open();
    const [bare] = cases({ ms: 1 });
    const without = { ...(bare ?? expect.fail()) };
    delete without.artifact;
    const observed = { ...bare, observationId: "obs-1" };
    const results = await scored(scorer, [
      without,
      { ...observed, index: 1 } as Case,
      ...cases({ ms: 1 }).map((one) => ({ ...one, index: 2, artifact: bytes("") })),
    ]);
    expect(results.map(({ outcome }) => (outcome.kind === "error" ? [outcome.code, outcome.message] : []))).toEqual([
      ["INVALID_CASE", expect.stringContaining("the case has no output; give `output`")],
      ["INVALID_CASE", expect.stringContaining("the sidecar measures what it runs itself")],
      ["INVALID_CASE", expect.stringContaining("`artifact` is an empty text")],
    ]);
    expect(runs().ran).toHaveLength(0);
    await scorer.close(0);
  });
});

describe("each run", () => {
  it("has a worker of its own, with a token of its own that ends with it", async () => {
    const { scorer, runs } = await open();
    const results = score(scorer, cases(...Array.from({ length: 10 }, () => ({ ms: 30 }))));
    await vi.advanceTimersByTimeAsync(5);
    const tokens = () => runs().ran.map(({ environment }) => environment["OPENAI_API_KEY"] ?? "");
    expect(tokens().map((token) => scorer.observations.gatewayOf(token) !== undefined)).toEqual([true, true]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await results).toHaveLength(10);
    expect(new Set(runs().ran).size).toBe(10);
    expect(new Set(tokens()).size).toBe(10);
    expect(tokens().some((token) => scorer.observations.gatewayOf(token) !== undefined)).toBe(false);
    expect(runs().ran.every(({ environment }) => environment["OPENAI_BASE_URL"] === GATEWAY)).toBe(true);
    await scorer.close(0);
  });

  it("waits for a place, which is not measured: at most so many are in progress", async () => {
    const { scorer, runs } = await open({ maxRuns: 2 });
    const results = await scored(scorer, cases(...Array.from({ length: 8 }, () => ({ ms: 100 }))));
    expect(runs().mostAtOnce).toBe(2);
    expect(results.map(({ observation }) => observation?.runMs)).toEqual(Array.from({ length: 8 }, () => 100));
    expect(results[7]?.queuedMs).toBeGreaterThanOrEqual(300);
    await scorer.close(0);
  });

  it("is billed for its own model calls alone", async () => {
    const { scorer, runs } = await open();
    const results = score(scorer, cases({ ms: 50 }, { ms: 50 }));
    await vi.advanceTimersByTimeAsync(5);
    const token = runs().ran[1]?.environment["OPENAI_API_KEY"] ?? "";
    const usage = { ...NO_TOKENS, promptTokens: 9 };
    scorer.observations.gatewayOf(token)?.meter.record({ usage, cost: { usd: new Big("0.25") } });
    await vi.advanceTimersByTimeAsync(1000);
    expect((await results).map(({ observation }) => observation?.usage)).toMatchObject([
      { calls: 0, cost: { usd: new Big(0) } },
      { calls: 1, promptTokens: 9, cost: { usd: new Big("0.25") } },
    ]);
    expect(scorer.modelUsage().gateway.calls).toBe(1);
    await scorer.close(0);
  });

  it("takes turns with those of other calls", async () => {
    const { scorer } = await open({ maxRuns: 1 });
    const many = score(scorer, cases(...Array.from({ length: 20 }, () => ({ ms: 100 }))));
    let isDone = false;
    const few = score(scorer, cases({ ms: 100 })).then(() => (isDone = true));
    await vi.advanceTimersByTimeAsync(500);
    expect(isDone).toBe(true);
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all([many, few]);
    await scorer.close(0);
  });
});

describe("a run that fails", () => {
  it.each<[RunBehaviour["then"], string, string]>([
    ["raise", "RUN_EXCEPTION", "KeyError: 'x' (run.py, line 2)"],
    ["refuse", "RUN_RETURN_VALUE", "run returned a set"],
    ["return_nonsense", "RUN_RETURN_VALUE", "the run's process answered with something that is not JSON"],
    ["return_not_utf8", "RUN_RETURN_VALUE", "the run's process answered with something that is not JSON"],
    ["score", "RUN_RETURN_VALUE", "the run's process answered with something that is not JSON"],
    ["silent", "RUN_RETURN_VALUE", "the run's process answered with something that is not JSON"],
    ["ask", "RUN_RETURN_VALUE", "the run's process answered with something that is not JSON"],
    ["die", "RUN_CRASHED", "the process that ran the artifact died: it exited with code 0"],
    ["breach", "RUN_CRASHED", "it was killed, since it sent rows of chunk 7, which it does not have"],
  ])("by way of %s costs its case alone, and its time is told", async (then, code, message) => {
    const { scorer } = await open();
    const [bad, good] = await scored(scorer, cases({ ms: 40, ...(then === undefined ? {} : { then }) }, { ms: 10 }));
    expect(bad?.outcome).toMatchObject({ kind: "error", code, message: expect.stringContaining(message) as string });
    expect(bad).toMatchObject({ metricMs: 0, isRun: true, observation: { runMs: 40 } });
    expect(bad?.output).toBeUndefined();
    expect(good?.outcome.kind).toBe("score");
    expect(scorer.isReady()).toBe(true);
    await scorer.close(0);
  });

  it("by returning more than is allowed says how much", async () => {
    const { scorer } = await open();
    const [result] = await scored(scorer, cases({ ms: 1, output: JSON.stringify("x".repeat(1000)) }));
    expect(result?.outcome).toMatchObject({
      code: "RUN_RETURN_VALUE",
      message:
        "the output takes 1002 bytes of JSON, and at most 1000 are allowed; return less from run(artifact, input)",
    });
    await scorer.close(0);
  });

  it("by running past its timeout is told at the deadline", async () => {
    const { scorer, runs } = await open();
    const results = score(scorer, cases({ ms: 1e9 }));
    await vi.advanceTimersByTimeAsync(1050);
    const [result] = await results;
    expect(result?.outcome).toMatchObject({ code: "RUN_TIMEOUT" });
    expect(result?.observation?.runMs).toBeGreaterThanOrEqual(1000);
    expect(result?.observation?.runMs).toBeLessThanOrEqual(1040);
    expect(runs().ended).toEqual(["timeout"]);
    await scorer.close(0);
  });

  it("keeps its place until its process is gone, so that the next run is not measured beside it", async () => {
    const { scorer, runs } = await open({ maxRuns: 1 });
    const results = await scored(scorer, cases({ ms: 1e9 }, { ms: 10 }));
    expect(results.map(({ outcome }) => outcome.kind)).toEqual(["error", "score"]);
    expect(runs().mostAtOnce).toBe(1);
    expect(results[1]?.queuedMs).toBeGreaterThanOrEqual(1000 + LEAVING_MS);
    await scorer.close(0);
  });
});

describe("a call that is cancelled", () => {
  it("drops what it has queued and ends what it has running; other calls go on", async () => {
    const { scorer, runs } = await open({ maxRuns: 1 });
    const controller = new AbortController();
    const cancelled = score(scorer, cases({ ms: 500 }, { ms: 500 }), controller.signal);
    const failed = expect(cancelled).rejects.toMatchObject({ code: "cancelled" });
    await vi.advanceTimersByTimeAsync(50);
    const other = score(scorer, cases({ ms: 10 }));
    controller.abort();
    await failed;
    await vi.advanceTimersByTimeAsync(1000);
    expect((await other)[0]?.outcome.kind).toBe("score");
    expect(runs().ran).toHaveLength(2);
    expect(runs().ended).toEqual(["cancelled", "surplus"]);
    await scorer.close(0);
  });
});

describe("readiness", () => {
  it("needs workers of both, and does not come and go between two runs", async () => {
    const { scorer } = await open({ maxRuns: 1 });
    const changes: boolean[] = [];
    scorer.onReadyChange((ready) => changes.push(ready));
    expect(scorer.isReady()).toBe(true);
    await scored(scorer, cases(...Array.from({ length: 5 }, () => ({ ms: 1 }))));
    expect(changes).toEqual([]);
    await scorer.close(0);
  });

  it("is lost where no process can be started to run anything, which the cases that wait are told", async () => {
    const { scorer, runs } = await open({ maxRuns: 1 });
    const results = score(scorer, cases({ ms: 10 }, { ms: 10 }));
    await vi.advanceTimersByTimeAsync(5);
    for (const worker of [...runs().workers]) if (worker.state === "idle") worker.end("surplus");
    runs().listener.unavailable("no memory");
    await vi.advanceTimersByTimeAsync(1000);
    expect((await results).map(({ outcome }) => (outcome.kind === "error" ? outcome.message : outcome.kind))).toEqual([
      "score",
      "no process could be started to run the artifact: no memory",
    ]);
    await scorer.close(0);
  });
});

describe("run code", () => {
  const problem = { step: "run_file" as const, message: "SyntaxError (run.py, line 1)", traceback: "Traceback" };

  it("is loaded with the metric; its environment has no provider's key and no proxy before the gateway", async () => {
    const { scorer, opened, runs } = await open({ maxRuns: 3 });
    expect(scorer.describe()).toMatchObject({ loaded: true, file: "metric.py", runFile: "run.py" });
    expect(opened.map(({ kind, file }) => [kind, file])).toEqual([
      ["metric", "metric.py"],
      ["run", "run.py"],
    ]);
    expect(opened[0]?.environment).toEqual({});
    expect(opened[1]?.environment).toMatchObject({
      OPENAI_API_KEY: undefined,
      NO_PROXY: expect.stringMatching(/(^|,)127\.0\.0\.1$/) as string,
    });
    expect(runs().workers.size).toBe(6);
    expect(scorer.workerCount()).toBe(2);
    await scorer.close(0);
  });

  it("that does not load refuses calls with the reason, and leaves nothing open", async () => {
    const { scorer, metricPools } = await open({ run: { ...RUN, problems: [problem] } });
    expect(scorer.describe()).toMatchObject({ loaded: false, loadError: problem.message, problems: [problem] });
    expect(() => scorer.open(never)).toThrow("the metric is not loaded: SyntaxError (run.py, line 1)");
    expect([scorer.isReady(), scorer.workerCount(), metricPools.length]).toEqual([false, 0, 1]);
    await scorer.close(0);
  });

  it("is loaded anew by a reload; runs in progress keep theirs", async () => {
    const { scorer, runPools } = await open();
    const results = score(scorer, cases({ ms: 500 }));
    await vi.advanceTimersByTimeAsync(50);
    await scorer.reload();
    expect(runPools.map(({ isClosed }) => isClosed)).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1000);
    expect((await results)[0]?.outcome.kind).toBe("score");
    expect(runPools.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    await scorer.close(0);
  });

  it("finishes its runs in a drain, and is ended at its deadline", async () => {
    const { scorer, runPools } = await open();
    const results = score(scorer, cases({ ms: 300 }, { ms: 900 }, { ms: 1e9 }));
    const failed = expect(results).rejects.toMatchObject({ code: "shutting_down" });
    await vi.advanceTimersByTimeAsync(50);
    const closing = scorer.close(500);
    await vi.advanceTimersByTimeAsync(500);
    await closing;
    await failed;
    expect(runPools[0]?.isClosed).toBe(true);

    const again = await open();
    const finished = score(again.scorer, cases({ ms: 300 }));
    await vi.advanceTimersByTimeAsync(50);
    const drained = again.scorer.close(10_000);
    await vi.advanceTimersByTimeAsync(1000);
    expect((await finished)[0]?.outcome.kind).toBe("score");
    await drained;
  });
});
