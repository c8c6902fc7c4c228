import { describe, expect, it } from "vitest";

import { caseFault, crashOutcome, rowOutcome } from "../../src/scoring/outcome.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("rowOutcome", () => {
  it("keeps named scores whatever their names are", () => {
    const outcome = rowOutcome({
      position: 0,
      kind: "score",
      value: 0.5,
      metricMs: 1,
      text: bytes("close"),
      detail: bytes('[["__proto__", 1], ["constructor", 0.25]]'),
      sideInfo: bytes(""),
    });
    expect(outcome).toMatchObject({
      kind: "score",
      scores: [
        ["__proto__", 1],
        ["constructor", 0.25],
      ],
    });
  });

  it("keeps an exception's message and traceback apart", () => {
    const outcome = rowOutcome({
      position: 0,
      kind: "metric_exception",
      value: 0,
      metricMs: 1,
      text: bytes("KeyError: 'é'"),
      detail: bytes("Traceback …"),
      sideInfo: bytes(""),
    });
    expect(outcome).toEqual({
      kind: "error",
      code: "METRIC_EXCEPTION",
      message: "KeyError: 'é'",
      traceback: "Traceback …",
    });
  });
});

it("folds what would break a message's line, and leaves a traceback's lines", () => {
  const row = { position: 0, value: 0, metricMs: 1, sideInfo: bytes("") };
  const message = "a\nb\u001b[1mc\u0085d\u2028e";
  expect(
    rowOutcome({ ...row, kind: "metric_exception", text: bytes(message), detail: bytes("one\ntwo") }),
  ).toMatchObject({ message: "a b [1mc d e", traceback: "one\ntwo" });
});

describe("caseFault", () => {
  const good = {
    id: "",
    index: 0,
    input: bytes("{}"),
    output: bytes("1"),
    expected: undefined,
    observationId: "",
  };

  it("finds nothing wrong with a case that a worker can read", () => {
    expect(caseFault(good, false)).toBeUndefined();
  });

  it.each([
    [{ ...good, input: undefined }, "the case has no input"],
    [{ ...good, output: undefined }, "the case has no output"],
    [{ ...good, output: bytes("") }, "`output` is an empty text"],
    [{ ...good, expected: bytes("[\u001e]") }, "`expected` is not JSON: the control character U+001E stands at byte 1"],
    [{ ...good, fault: "`input` holds NaN" }, "`input` holds NaN"],
  ])("tells what is wrong: %#", (item, message) => {
    expect(caseFault(item, false)).toMatchObject({
      code: "INVALID_CASE",
      message: expect.stringContaining(message) as string,
    });
  });
});

describe("crashOutcome", () => {
  it("tells a signal from an exit code", () => {
    const death = { pid: 1, position: 0 };
    expect(crashOutcome({ ...death, exitCode: undefined, signal: "SIGSEGV" }).message).toContain("killed by SIGSEGV");
    expect(crashOutcome({ ...death, exitCode: 0, signal: undefined }).message).toContain("it exited with code 0");
  });
});
