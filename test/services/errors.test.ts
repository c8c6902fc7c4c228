import { describe, expect, test } from "vitest";

import { ScorerError } from "../../src/scoring/scorer.js";
import {
  CallError,
  type CallErrorCode,
  callStatus,
  MAX_STATUS_BYTES,
  STATUS_OF,
  statusText,
} from "../../src/services/errors.js";

describe("callStatus", () => {
  test.each<[CallErrorCode, number]>([
    ["cancelled", 1],
    ["invalid_request", 3],
    ["not_found", 5],
    ["too_large", 8],
    ["metric_not_loaded", 9],
    ["not_available", 12],
    ["internal", 13],
    ["shutting_down", 14],
  ])("%s is the canonical status %i", (code, status) => {
    expect(callStatus(new CallError(code, "why"))).toEqual({ code, status, message: "why" });
    expect(STATUS_OF[code]).toBe(status);
  });

  test("the scorer's errors keep their code and text", () => {
    const reason = new ScorerError("metric_not_loaded", "ImportError: no module named x (metric.py, line 3)");
    expect(callStatus(reason)).toEqual({ code: "metric_not_loaded", status: 9, message: reason.message });
  });

  test("a foreign error says nothing of itself", () => {
    const { code, message } = callStatus(new Error("/home/someone/secret"));
    expect(code).toBe("internal");
    expect(message).not.toContain("secret");
  });
});

describe("statusText", () => {
  test("a short text stays as it is, whatever its language", () => {
    expect(statusText("メトリクスの戻り値: 100 %")).toBe("メトリクスの戻り値: 100 %");
  });

  test.each([
    ["a megabyte of newlines, NUL and non-ASCII text", "é\n\0日本\u{1F600}".repeat(200_000)],
    ["a text of surrogate halves", "\uD83D".repeat(5_000)],
    ["one character too many", "x".repeat(MAX_STATUS_BYTES + 1)],
    ["a text that is short only before it is encoded", "日".repeat(300)],
  ])("%s arrives on one line, within the limit, with a mark", (_what, text) => {
    const short = statusText(text);
    expect(encodeURI(short).length).toBeLessThanOrEqual(MAX_STATUS_BYTES);
    expect(short).toMatch(/ \.\.\. \[cut\]$/);
    expect(short).not.toMatch(/\p{Cc}/u);
  });

  test("a text that exactly fits is not cut", () => {
    const text = "x".repeat(MAX_STATUS_BYTES);
    expect(statusText(text)).toBe(text);
  });
});
