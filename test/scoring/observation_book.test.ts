import { Big } from "big.js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { NO_TOKENS } from "../../src/model/token_usage.js";
import { ObservationBook } from "../../src/scoring/observation_book.js";
import type { ObservationError } from "../../src/scoring/observations.js";

const CALL = { usage: { ...NO_TOKENS, promptTokens: 100 }, cost: { usd: new Big("0.001") } };
const ENGINE = {};

let total: Meter;
let debug: ReturnType<typeof vi.fn<(fields: object, message: string) => void>>;
let book: ObservationBook;

beforeEach(() => {
  vi.useFakeTimers();
  total = new Meter();
  debug = vi.fn<(fields: object, message: string) => void>();
  book = new ObservationBook(total, { debug, info: vi.fn(), warn: vi.fn(), error: vi.fn() });
});
afterEach(() => vi.useRealTimers());

function errorOf(action: () => unknown): Pick<ObservationError, "code" | "message"> {
  try {
    action();
  } catch (reason) {
    return reason as ObservationError;
  }
  return expect.fail("it should have thrown");
}

describe("an observation", () => {
  it("measures the time between its begin and its end", () => {
    const { id } = book.begin("", ENGINE);
    vi.advanceTimersByTime(1234);
    expect(book.end(id)).toMatchObject({ id, runMs: 1234, usage: { calls: 0, cost: { usd: new Big(0) } } });
  });

  it("counts the calls of its own token, and all calls in the total", () => {
    const [one, other] = [book.begin("", ENGINE), book.begin("", ENGINE)];
    book.gatewayOf(one.token)?.meter.record(CALL);
    book.gatewayOf(one.token)?.meter.record(CALL);
    book.gatewayOf(other.token)?.meter.record(CALL);
    expect(book.end(one.id).usage).toMatchObject({ calls: 2, promptTokens: 200, cost: { usd: new Big("0.002") } });
    expect(book.end(other.id).usage).toMatchObject({ calls: 1 });
    expect(total.usage().calls).toBe(3);
  });

  it("has an id and a token that nobody guesses", () => {
    const opened = Array.from({ length: 100 }, () => book.begin("", ENGINE));
    expect(new Set(opened.flatMap(({ id, token }) => [id, token])).size).toBe(200);
    expect(opened.every(({ token }) => /^sk-skynet-[\w-]{32}$/.test(token))).toBe(true);
    expect(book.gatewayOf("")).toBeUndefined();
    expect(book.gatewayOf("sk-skynet-guess")).toBeUndefined();
  });

  it("that ends takes its token with it, aborts its calls, and does not know what they cost", () => {
    const { id, token } = book.begin("", ENGINE);
    const calls = book.gatewayOf(token);
    const [answered, pending] = [vi.fn(), vi.fn()];
    const counted = calls?.begin(answered);
    calls?.meter.record(CALL);
    counted?.();
    calls?.begin(pending);
    const { usage } = book.end(id);
    expect(usage).toMatchObject({
      calls: 2,
      promptTokens: 100,
      cost: { usd: undefined, reason: "a model call was still in flight when the run ended" },
    });
    expect(answered).not.toHaveBeenCalled();
    expect(pending).toHaveBeenCalledOnce();
    expect(book.gatewayOf(token)).toBeUndefined();
  });

  it("is told to the log with its label, and without its token", () => {
    const { id, token } = book.begin("candidate 7", ENGINE);
    book.end(id);
    expect(debug).toHaveBeenCalledWith(
      expect.objectContaining({ observation: id, label: "candidate 7" }),
      "an observation ended",
    );
    expect(JSON.stringify(debug.mock.calls)).not.toContain(token);
  });
});

describe("what cannot be done", () => {
  it("ending one that is unknown", () => {
    expect(errorOf(() => book.end("obs-9"))).toMatchObject({
      code: "unknown",
      message: expect.stringContaining('no observation is called "obs-9"; use the id') as string,
    });
  });

  it("ending one twice, used or not", () => {
    const { id } = book.begin("", ENGINE);
    book.end(id);
    expect(errorOf(() => book.end(id))).toMatchObject({ code: "already_ended" });
    book.use(id);
    expect(errorOf(() => book.end(id))).toMatchObject({ code: "already_ended" });
  });

  it("using one that is unknown, still open, or belongs to another case", () => {
    expect(errorOf(() => book.use("nonsense"))).toMatchObject({ code: "unknown" });
    const { id } = book.begin("", ENGINE);
    expect(errorOf(() => book.use(id))).toMatchObject({ code: "still_open" });
    const observed = book.end(id);
    expect(book.use(id)).toBe(observed);
    expect(errorOf(() => book.use(id))).toMatchObject({
      code: "already_used",
      message: `observation ${id} belongs to another case already; observe each run`,
    });
  });
});

describe("an owner that is gone", () => {
  it("takes its open observations along, and no others", () => {
    const other = {};
    const [open, ended, foreign] = [book.begin("", ENGINE), book.begin("", ENGINE), book.begin("", other)];
    const abort = vi.fn();
    book.gatewayOf(open.token)?.begin(abort);
    book.end(ended.id);
    book.drop(ENGINE);
    expect(abort).toHaveBeenCalledOnce();
    expect(book.gatewayOf(open.token)).toBeUndefined();
    expect(errorOf(() => book.end(open.id))).toMatchObject({ code: "unknown" });
    expect(book.use(ended.id)).toMatchObject({ id: ended.id });
    expect(book.end(foreign.id)).toMatchObject({ id: foreign.id });
  });
});
