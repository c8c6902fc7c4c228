import { describe, expect, it } from "vitest";

import { type SummaryParts, summaryJson, summaryText } from "../../../src/cli/score/summary.js";
import { Tally } from "../../../src/cli/score/tally.js";
import { CaseErrorCode, type CaseResult } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { NO_GAPS, failed, scored } from "./results.js";

function parts(results: readonly CaseResult[], rest: Partial<SummaryParts> = {}): SummaryParts {
  const tally = new Tally();
  for (const result of results) tally.add(result);
  return {
    cases: { name: "cases.csv", requests: [], lines: [2, 3, 5, 6, 7], unit: "line", gaps: NO_GAPS },
    run: { tally, end: { kind: "complete" }, scoringMs: 250 },
    metricFingerprint: "f1",
    output: undefined,
    ...rest,
  };
}

const SOME = [
  scored(0, 1, { id: "a", scores: { format: 1 }, metricMs: 2 }),
  scored(1, 0, { feedback: "Say\nwhy. \u001B[31m" + "long ".repeat(40), scores: { format: 0.5 }, metricMs: 20 }),
  failed(2, CaseErrorCode.METRIC_TIMEOUT, "the metric ran past its timeout of 2 s"),
];

describe("for people", () => {
  it("has a table of scores, the errors, the lowest cases and the times", () => {
    const text = summaryText(parts(SOME, { output: { path: "r.jsonl", written: 3 } }), 80);
    expect(text).toBe(
      [
        "        cases    mean      sd  95 % confidence",
        "score       2  0.5000  0.7071  -5.8531 to 6.8531",
        "format      2  0.7500  0.3536  -2.4266 to 3.9266",
        "",
        "errors          cases  first",
        "METRIC_TIMEOUT      1  line 5, index 2: the metric ran past its timeout of 2 s",
        "",
        "lowest            score  feedback",
        `line 3, index 1  0.0000  Say why. ${"long ".repeat(9).trimEnd()}…`,
        "a                1.0000",
        "",
        "3 of 5 cases",
        "metric time p50 2.000 ms, p99 20.0 ms",
        "scored in 0.250 s (12 cases/s)",
        "",
        "3 results in r.jsonl",
        "",
      ].join("\n"),
    );
  });

  it.each([60, 80, 100, 200])("fits a terminal of %i columns", (width) => {
    const wide = [
      ...SOME,
      scored(3, -1, { id: "x".repeat(80), feedback: "日本".repeat(100), scores: { ["y".repeat(90)]: 1e9 } }),
    ];
    for (const line of summaryText(parts(wide), width).split("\n")) {
      const columns = Array.from(line).reduce((sum, character) => sum + (/[日本]/.test(character) ? 2 : 1), 0);
      expect(columns).toBeLessThanOrEqual(width);
    }
  });

  it("keeps the end of an error, which says where it is, and all of it where there is no terminal", () => {
    const message = `KeyError: '${"key ".repeat(40)}' (metric.py, line 12)`;
    const result = failed(2, CaseErrorCode.METRIC_EXCEPTION, message);
    const narrow = summaryText(parts([result]), 80);
    expect(narrow).toMatch(/line 5, index 2: Key.*….*\(metric\.py, line 12\)\n/);
    expect(summaryText(parts([result]), undefined)).toContain(`line 5, index 2: ${message}\n`);
  });

  it("names a case of a JSON array by its place", () => {
    const cases = { ...parts([]).cases, unit: "case" } as const;
    expect(summaryText(parts([scored(1, 1)], { cases }), 80)).toContain("\ncase 2, index 1  1.0000");
  });

  it("has no table where nothing was scored", () => {
    expect(summaryText(parts([]), 80)).toBe("0 of 5 cases\nscored in 0.250 s (0 cases/s)\n");
  });
});

describe("for machines", () => {
  it("has every figure, whole", () => {
    expect(summaryJson(parts(SOME))).toEqual({
      end: "complete",
      cases: 5,
      results: 3,
      scored: 2,
      errors: 1,
      errors_by_code: { METRIC_TIMEOUT: 1 },
      score: { cases: 2, mean: 0.5, sd: Math.SQRT1_2, ci95: [expect.closeTo(-5.853, 2), expect.closeTo(6.853, 2)] },
      scores: { format: expect.objectContaining({ cases: 2, mean: 0.75 }) as object },
      metric_ms: { p50: 2, p99: 20 },
      metric_cost: { usd: 0, cases: 0, cases_not_measured: 0 },
      run_ms: { p50: null, p99: null },
      run_cost: { usd: 0, cases: 0, cases_not_measured: 0 },
      scoring_seconds: 0.25,
      cases_per_second: 12,
      lowest: [
        { id: "", index: 1, line: 3, score: 0, feedback: "Say\nwhy. \u001B[31m" + "long ".repeat(40) },
        { id: "a", index: 0, line: 2, score: 1, feedback: "" },
      ],
      metric_fingerprint: "f1",
    });
  });

  it("says why a run ended early, and null for what is not known", () => {
    const run = { tally: new Tally(), end: { kind: "failed", error: new Error("it broke") }, scoringMs: 0 } as const;
    expect(summaryJson(parts([], { run, output: { path: "r.jsonl", written: 0 } }))).toMatchObject({
      end: "failed",
      failure: "it broke",
      score: { cases: 0, mean: null, sd: null, ci95: null },
      metric_ms: { p50: null, p99: null },
      cases_per_second: 0,
      output: "r.jsonl",
      output_results: 0,
    });
  });
});
