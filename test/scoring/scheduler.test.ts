import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { Call, type CallHost } from "../../src/scoring/call.js";
import type { Case } from "../../src/scoring/case.js";
import { FaultLog } from "../../src/scoring/fault_log.js";
import { DEFAULT_FLIGHT_LIMITS, type FlightLimits, TotalFlight } from "../../src/scoring/in_flight.js";
import { ModelCalls } from "../../src/scoring/model_calls.js";
import type { CaseResult } from "../../src/scoring/result.js";
import { Scheduler } from "../../src/scoring/scheduler.js";
import type { MetricDescription } from "../../src/scoring/scorer.js";
import { WorkerCount } from "../../src/scoring/worker_count.js";
import { LOADED_METRIC, MODEL_CALL } from "./fake_messages.js";
import { type Behaviour, FakePool } from "./fake_pool.js";

const METRIC: MetricDescription = { ...LOADED_METRIC, loaded: true, loadError: "", runFile: "" };

const LOG = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
const NO_MODEL = { hasModel: false, complete: () => Promise.reject(new Error("no test here asks a model")) } as const;

interface Setup {
  readonly timeoutMs?: number;
  readonly fixed?: number;
  readonly limits?: Partial<FlightLimits>;
}

function setUp({ timeoutMs = 60_000, fixed, limits = {} }: Setup = {}) {
  const warn = vi.fn();
  const scheduler = new Scheduler({
    metricTimeoutMs: timeoutMs,
    seed: undefined,
    count: new WorkerCount(2, 64, fixed),
    models: new ModelCalls(NO_MODEL, new Meter(), LOG),
    faults: new FaultLog({ debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() }),
    fits: () => undefined,
    readyChanged: vi.fn(),
  });
  const pool = new FakePool(scheduler);
  scheduler.begin(pool);
  const flight = new TotalFlight({ ...DEFAULT_FLIGHT_LIMITS, ...limits });
  const calls = new Set<Call>();
  const host: CallHost = {
    hasRuns: false,
    observed: () => undefined,
    queued: (call) => {
      scheduler.queued(call);
    },
    over: (call) => {
      calls.delete(call);
      scheduler.over(call);
    },
  };
  const open = (signal: AbortSignal): Call => {
    const call = new Call(METRIC, host, flight, signal);
    if (!call.isOver) calls.add(call);
    return call;
  };
  return { scheduler, pool, warn, calls, open, flight };
}

function cases(behaviours: readonly Behaviour[], from = 0): Case[] {
  return behaviours.map((behaviour, at) => ({
    id: `c${from + at}`,
    index: from + at,
    input: bytes("{}"),
    output: bytes(JSON.stringify(behaviour)),
    expected: undefined,
    observationId: "",
  }));
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const many = (count: number, behaviour: Behaviour): Behaviour[] => Array.from({ length: count }, () => behaviour);

async function* source(...batches: (readonly Case[])[]): AsyncGenerator<readonly Case[]> {
  for (const batch of batches) {
    await Promise.resolve();
    yield batch;
  }
}

/** Takes everything as it comes. */
function collect(results: AsyncIterable<readonly CaseResult[]>) {
  const taken: CaseResult[] = [];
  const done = (async () => {
    for await (const batch of results) taken.push(...batch);
    return taken;
  })();
  return { taken, done };
}

const codes = (results: readonly CaseResult[]): string[] =>
  [...results]
    .sort((a, b) => a.index - b.index)
    .map(({ outcome }) => (outcome.kind === "score" ? "score" : outcome.code));

const never = new AbortController().signal;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("every case gets exactly one result", () => {
  it("of a batch that is faster than the network", async () => {
    const { pool, open } = setUp();
    const { done } = collect(open(never).score(source(cases(many(1000, { ms: 0 })))));
    await vi.runAllTimersAsync();
    const results = await done;
    expect(results.map((result) => result.index).sort((a, b) => a - b)).toEqual([...Array(1000).keys()]);
    expect(Math.max(...pool.chunks)).toBeGreaterThan(100);
  });

  it("with workers that die over some cases", async () => {
    const { open } = setUp();
    const behaviours = many(100, { ms: 1 }).map((behaviour, at) =>
      at % 10 === 3 ? ({ ms: 1, then: "die" } as const) : behaviour,
    );
    const { done } = collect(open(never).score(source(cases(behaviours))));
    await vi.runAllTimersAsync();
    expect(codes(await done)).toEqual(behaviours.map(({ then }) => (then === "die" ? "METRIC_CRASHED" : "score")));
  });

  it("where a case kills each worker before it begins", async () => {
    const { open } = setUp();
    const behaviours: Behaviour[] = [{ ms: 1 }, { ms: 1, then: "die_idle" }, { ms: 1 }];
    const { done } = collect(open(never).score(source(cases(behaviours))));
    await vi.runAllTimersAsync();
    expect(codes(await done)).toEqual(["score", "METRIC_CRASHED", "score"]);
  });

  it("of cases that cannot be given to a metric", async () => {
    const { open } = setUp();
    const good = cases(many(4, { ms: 1 }));
    const batch = good.map((item, at): Case => {
      if (at === 0) return { ...item, input: undefined };
      if (at === 1) return { ...item, output: undefined };
      return at === 2 ? { ...item, expected: bytes('{"a": "\u001e"}') } : item;
    });
    const { done } = collect(open(never).score(source(batch)));
    await vi.runAllTimersAsync();
    const results = await done;
    expect(codes(results)).toEqual(["INVALID_CASE", "INVALID_CASE", "INVALID_CASE", "score"]);
    const third = results.find((result) => result.index === 2)?.outcome;
    expect(third).toMatchObject({ message: expect.stringContaining("U+001E stands at byte 7") as string });
  });

  it("when no worker can be had", async () => {
    const { scheduler, open } = setUp();
    const { done } = collect(open(never).score(source(cases(many(3, { ms: 1 })))));
    await vi.advanceTimersByTimeAsync(0);
    scheduler.unavailable("the system says no");
    await vi.runAllTimersAsync();
    expect(codes(await done)).toEqual(many(3, { ms: 0 }).map(() => "METRIC_CRASHED"));
  });
});

describe("a judge", () => {
  it("is not watched while it waits, and still ends in time", async () => {
    const { scheduler, pool, open } = setUp({ timeoutMs: 2000 });
    const { done } = collect(open(never).score(source(cases(many(2, { ms: 3_600_000, cpuMs: 0 })))));
    await vi.advanceTimersByTimeAsync(11);
    const workers = [...pool.workers];
    for (const worker of workers) scheduler.modelCall(worker, MODEL_CALL);
    const looks = workers.map((worker) => vi.spyOn(worker, "look"));
    const times = workers.map((worker) => vi.spyOn(worker, "cpuTimes"));
    await vi.advanceTimersByTimeAsync(1900);
    expect([...looks, ...times].map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0, 0]);
    await vi.advanceTimersByTimeAsync(200);
    expect(codes(await done)).toEqual(["METRIC_TIMEOUT", "METRIC_TIMEOUT"]);
    await vi.runAllTimersAsync();
  });

  it("has the results of one moment in one response", async () => {
    const { scheduler, pool, open } = setUp();
    const batches: number[] = [];
    const done = (async () => {
      const results = open(never).score(source(cases(many(64, { ms: 200, cpuMs: 0 }))));
      for await (const batch of results) batches.push(batch.length);
    })();
    await vi.advanceTimersByTimeAsync(11);
    for (const worker of [...pool.workers]) scheduler.modelCall(worker, MODEL_CALL);
    await vi.runAllTimersAsync();
    await done;
    expect(batches).toEqual([2, 62]);
  });
});

describe("deadlines", () => {
  it("end a case that never returns, and only that one", async () => {
    const { pool, open } = setUp({ timeoutMs: 2000 });
    const behaviours = many(50, { ms: 1 });
    behaviours[20] = { ms: 1e9 };
    const began = performance.now();
    const { done } = collect(open(never).score(source(cases(behaviours))));
    await vi.advanceTimersByTimeAsync(3000);
    const results = await done;
    expect(codes(results)).toEqual(behaviours.map(({ ms }) => (ms > 1 ? "METRIC_TIMEOUT" : "score")));
    expect(pool.ended).toEqual([{ worker: expect.any(Number) as number, reason: "timeout" }]);
    const late = results.find((result) => result.outcome.kind === "error");
    expect(late?.metricMs).toBeGreaterThanOrEqual(2000);
    expect(late?.metricMs).toBeLessThan(2250);
    expect(performance.now() - began).toBeLessThan(3001);
  });

  it("count from when the case began, not from when its chunk did", async () => {
    const { pool, open } = setUp({ timeoutMs: 100, fixed: 1 });
    const { done } = collect(open(never).score(source(cases(many(20, { ms: 90, cpuMs: 1 })))));
    await vi.runAllTimersAsync();
    expect(codes(await done).every((code) => code === "score")).toBe(true);
    expect(pool.ended).toEqual([]);
  });
});

describe("workers", () => {
  it("grow for a metric that waits, before its first result", async () => {
    const { pool, open } = setUp();
    const began = performance.now();
    const waits = many(512, { ms: 200, cpuMs: 0.2 });
    const { done } = collect(open(never).score(source(cases(waits))));
    await vi.advanceTimersByTimeAsync(60);
    expect(pool.workers.size).toBe(64);
    await vi.advanceTimersByTimeAsync(10_000);
    await done;
    expect(pool.mostBusy).toBe(64);
    expect(performance.now() - began).toBeGreaterThan(0);
  });

  it("stay one a core for a metric that computes", async () => {
    const { pool, open } = setUp();
    const { done } = collect(open(never).score(source(cases(many(300, { ms: 5 })))));
    await vi.runAllTimersAsync();
    await done;
    expect(pool.mostBusy).toBe(2);
    expect(pool.workers.size).toBe(2);
  });

  it("stay one a core for a metric that computes on a machine that is busy with other things", async () => {
    const { pool, open } = setUp();
    const starved = many(100, { ms: 200, cpuMs: 20, coreWaitMs: 180 });
    const { done } = collect(open(never).score(source(cases(starved))));
    await vi.runAllTimersAsync();
    await done;
    expect(pool.mostBusy).toBe(2);
  });

  it("share again what a chunk of unexpectedly slow cases holds", async () => {
    const { pool, open } = setUp();
    const behaviours = [...many(2000, { ms: 0.001 }), ...many(128, { ms: 200, cpuMs: 0.1 })];
    const began = performance.now();
    const { done } = collect(open(never).score(source(cases(behaviours))));
    let endedAt = 0;
    const noted = done.then(() => (endedAt = performance.now()));
    await vi.advanceTimersByTimeAsync(30_000);
    await noted;
    expect(pool.mostBusy).toBeGreaterThan(32);
    expect(endedAt - began).toBeLessThan(2000);
  });
});

describe("calls", () => {
  it("take turns", async () => {
    const { open } = setUp({ fixed: 1 });
    const long = collect(open(never).score(source(cases(many(1000, { ms: 5 })))));
    await vi.advanceTimersByTimeAsync(100);
    const short = collect(open(never).score(source(cases(many(5, { ms: 5 })))));
    await vi.advanceTimersByTimeAsync(100);
    expect(short.taken).toHaveLength(5);
    expect(long.taken.length).toBeLessThan(50);
    await vi.runAllTimersAsync();
    await long.done;
  });

  it("that are cancelled drop what is queued and end what runs; others notice nothing", async () => {
    const { pool, calls, open } = setUp({ fixed: 2 });
    const cancel = new AbortController();
    const gone = collect(open(cancel.signal).score(source(cases(many(10, { ms: 1e9 })))));
    const failed = expect(gone.done).rejects.toMatchObject({ code: "cancelled" });
    await vi.advanceTimersByTimeAsync(50);
    const stays = collect(open(never).score(source(cases(many(5, { ms: 1 })))));
    await vi.advanceTimersByTimeAsync(50);
    cancel.abort();
    await failed;
    await vi.advanceTimersByTimeAsync(1000);
    expect(codes(await stays.done)).toEqual(Array(5).fill("score"));
    expect(pool.ended.map(({ reason }) => reason)).toEqual(["cancelled", "cancelled"]);
    expect(calls.size).toBe(0);
  });

  it("whose consumer stops are finalized, and their source too", async () => {
    const { calls, open } = setUp();
    let finalized = false;
    async function* endless(): AsyncGenerator<readonly Case[]> {
      try {
        for (let from = 0; ; from += 10) {
          await Promise.resolve();
          yield cases(many(10, { ms: 1 }), from);
        }
      } finally {
        finalized = true;
      }
    }
    const results = open(never).score(endless())[Symbol.asyncIterator]();
    const first = results.next();
    await vi.advanceTimersByTimeAsync(100);
    expect((await first).done).toBe(false);
    await results.return(undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(finalized).toBe(true);
    expect(calls.size).toBe(0);
  });

  it("whose source fails fail with its error", async () => {
    const { open } = setUp();
    async function* broken(): AsyncGenerator<readonly Case[]> {
      await Promise.resolve();
      yield cases(many(1, { ms: 1 }));
      throw new Error("the stream broke");
    }
    const { done } = collect(open(never).score(broken()));
    const failed = expect(done).rejects.toThrow("the stream broke");
    await vi.advanceTimersByTimeAsync(1000);
    await failed;
  });

  it("that are closed give the results of what they took, then say that the sidecar shuts down", async () => {
    const { open } = setUp();
    async function* endlessly(): AsyncGenerator<readonly Case[]> {
      yield cases(many(4, { ms: 10 }));
      await new Promise(() => undefined);
    }
    const call = open(never);
    const { taken, done } = collect(call.score(endlessly()));
    const failed = expect(done).rejects.toMatchObject({ code: "shutting_down" });
    await vi.advanceTimersByTimeAsync(15);
    call.close();
    await vi.advanceTimersByTimeAsync(1000);
    await failed;
    expect(codes(taken)).toEqual(Array(4).fill("score"));
  });

  it("stop pulling while their consumer does not take results", async () => {
    const { open } = setUp({ limits: { callCases: 50 } });
    let pulled = 0;
    async function* counted(): AsyncGenerator<readonly Case[]> {
      for (let from = 0; from < 1000; from += 10) {
        pulled += 10;
        await Promise.resolve();
        yield cases(many(10, { ms: 1 }), from);
      }
    }
    const results = open(never).score(counted())[Symbol.asyncIterator]();
    const first = results.next();
    await vi.advanceTimersByTimeAsync(10_000);
    const step = await first;
    expect(pulled).toBe(50);
    let taken = step.done === true ? 0 : step.value.length;
    const rest = (async () => {
      for (let next = await results.next(); next.done !== true; next = await results.next()) taken += next.value.length;
    })();
    await vi.runAllTimersAsync();
    await rest;
    expect(taken).toBe(1000);
  });

  it("run nothing more while large results stand", async () => {
    const { open } = setUp({ limits: { callBytes: 10_000 } });
    const big = cases(many(100, { ms: 1, feedback: 5_000 }));
    const results = open(never).score(source(big))[Symbol.asyncIterator]();
    const first = results.next();
    await vi.advanceTimersByTimeAsync(10_000);
    let taken = 0;
    let most = 0;
    for (let next = await first; next.done !== true;) {
      taken += next.value.length;
      most = Math.max(most, next.value.length);
      const step = results.next();
      await vi.advanceTimersByTimeAsync(1000);
      next = await step;
    }
    expect(taken).toBe(100);
    expect(most).toBeLessThan(30);
  });
});

describe("results that nobody reads", () => {
  /** Begins calls of cases with 1,000 bytes of feedback each, and takes only the first results of each. */
  async function hang(open: (signal: AbortSignal) => Call, count: number) {
    const ends = Array.from({ length: count }, () => new AbortController());
    for (const { signal } of ends) {
      const results = open(signal)
        .score(source(cases(many(500, { ms: 0, feedback: 1_000 }))))
        [Symbol.asyncIterator]();
      results.next().catch(() => undefined);
    }
    await vi.advanceTimersByTimeAsync(10_000);
    return ends;
  }
  const limits = { callBytes: 50_000, totalBytes: 200_000, leastBytes: 5_000 };

  it.each([5, 50])("stay within the limits, with %i calls", async (count) => {
    const { flight, open } = setUp({ limits });
    await hang(open, count);
    const payloads = count * 500 * 250;
    expect(flight.bytes - payloads).toBeLessThan(limits.totalBytes + count * (limits.leastBytes + 1_500));
  });

  it("hold up nobody who reads his own", async () => {
    const { flight, open } = setUp({ limits });
    const ends = await hang(open, 20);
    const { done } = collect(open(never).score(source(cases(many(500, { ms: 0, feedback: 1_000 })))));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await done).toHaveLength(500);
    for (const end of ends) end.abort();
    expect(flight.bytes).toBe(0);
  });

  it("are kept by calls that need all of theirs at once: those end one after the other", async () => {
    const { flight, open } = setUp({ limits });
    const results = Array.from({ length: 5 }, () =>
      collect(open(never).score(source(cases(many(100, { ms: 1, feedback: 1_000 }))), true)),
    );
    let most = 0;
    for (let step = 0; step < 1_000; step++) {
      await vi.advanceTimersByTimeAsync(1);
      most = Math.max(most, flight.bytes);
    }
    for (const { done } of results) expect(await done).toHaveLength(100);
    expect(most).toBeGreaterThan(limits.totalBytes);
    expect(most).toBeLessThan(limits.totalBytes + 100_000);
    expect(flight.bytes).toBe(0);
  });
});

describe("a metric that is faster than its cases are handed over", () => {
  const quick = (count: number): Behaviour[] => many(count, { ms: 0 });

  it("has its next chunk waiting, and each case one result", async () => {
    const { pool, open } = setUp({ fixed: 2 });
    const { done } = collect(open(never).score(source(cases(quick(6000)))));
    await vi.runAllTimersAsync();
    expect(codes(await done)).toEqual(Array(6000).fill("score"));
    expect(pool.queued).toBeGreaterThan(0);
  });

  it("loses nothing where its worker dies with a chunk waiting", async () => {
    const { pool, open } = setUp({ fixed: 2 });
    const behaviours = [...quick(1500), { ms: 0, then: "die" } as const, ...quick(4499)];
    const { done } = collect(open(never).score(source(cases(behaviours))));
    await vi.runAllTimersAsync();
    const results = await done;
    expect(new Set(results.map(({ index }) => index)).size).toBe(6000);
    expect(codes(results).filter((code) => code !== "score")).toEqual(["METRIC_CRASHED"]);
    expect(pool.queued).toBeGreaterThan(0);
  });

  it("goes on with the next call where the one of the waiting chunk is cancelled", async () => {
    const { pool, open } = setUp({ fixed: 1 });
    const cancel = new AbortController();
    const first = collect(open(cancel.signal).score(source(cases(many(8000, { ms: 0.004 })))));
    while (pool.queued === 0) await vi.advanceTimersByTimeAsync(1);
    cancel.abort();
    await expect(first.done).rejects.toMatchObject({ code: "cancelled" });
    const second = collect(open(never).score(source(cases(quick(10)))));
    await vi.runAllTimersAsync();
    expect(codes(await second.done)).toEqual(Array(10).fill("score"));
  });

  it("has none waiting where it is slow", async () => {
    const { pool, open } = setUp({ fixed: 2 });
    const { done } = collect(open(never).score(source(cases(many(3000, { ms: 1 })))));
    await vi.runAllTimersAsync();
    await done;
    expect(pool.queued).toBe(0);
  });
});

describe("a call whose signal was aborted before", () => {
  it("is over at once, and nobody waits for it", async () => {
    const { calls, open } = setUp();
    const call = open(AbortSignal.abort());
    await expect(collect(call.score(source(cases(many(1, { ms: 1 }))))).done).rejects.toMatchObject({
      code: "cancelled",
    });
    expect(calls.size).toBe(0);
  });
});

describe("the log", () => {
  it("gets the traceback of a fault, and not the thousandth of its kind", async () => {
    const { warn, open } = setUp();
    const { done } = collect(open(never).score(source(cases(many(100, { ms: 1, then: "raise" })))));
    await vi.runAllTimersAsync();
    expect(codes(await done)).toEqual(Array(100).fill("METRIC_EXCEPTION"));
    expect(warn).toHaveBeenCalledTimes(5);
  });
});
