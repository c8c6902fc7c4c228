import { describe, expect, it } from "vitest";

import { type SummaryParts, summaryJson, summaryText } from "../../../src/cli/score/summary.js";
import { Tally } from "../../../src/cli/score/tally.js";
import { CaseErrorCode, type CaseResult } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { NO_GAPS, failed, judged, observed, scored } from "./results.js";

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

const NOTHING_SPENT = {
  usd: 0,
  cases: 0,
  cases_not_measured: 0,
  calls: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
};

/** Runs and a judge, of which some could not be measured. */
const MEASURED = [
  observed(0, { runMs: 300, costUsd: 0.1, usage: { calls: 2, promptTokens: 1200, completionTokens: 30 } }),
  observed(1, { runMs: 500, costUsd: 0.2, usage: { calls: 1, promptTokens: 100, completionTokens: 10 } }),
  observed(2, { runMs: 400, costNotMeasuredReason: "the answer has no usage", usage: { calls: 1 } }),
  judged(3, { calls: 1, promptTokens: 50, completionTokens: 5, costUsd: 0.00002 }),
  judged(4, { calls: 1 }),
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

  it("tells time and cost of runs, apart from that the judge's cost, and what was not measured", () => {
    expect(summaryText(parts(MEASURED), 80).trimEnd().split("\n").slice(-9)).toEqual([
      "5 of 5 cases",
      "metric time p50 1.000 ms, p99 1.000 ms",
      "run time p50 400.0 ms, p99 500.0 ms",
      "run cost $0.300000 (4 model calls, 1,300 tokens in, 40 out)",
      "  not measured for 1 of 3 cases: the answer has no usage",
      "judge cost $0.000020000 (2 model calls, 50 tokens in, 5 out)",
      expect.stringMatching(/^ {2}not measured for 1 of 2 cases: /) as string,
      expect.stringMatching(/^ {2}\S/) as string,
      "scored in 0.250 s (20 cases/s)",
    ]);
  });

  it("says of runs without model calls that they cost nothing, and of costs that nobody knows that they were not measured", () => {
    expect(summaryText(parts([observed(0, { runMs: 3, costUsd: 0 })]), 80)).toContain("run cost $0 (no model calls)\n");
    const unknown = [observed(0, { costNotMeasuredReason: "why", runNotMeasuredReason: "lost", usage: { calls: 1 } })];
    const text = summaryText(parts(unknown), 80);
    expect(text).toContain("run time not measured for 1 case\n");
    expect(text).toContain(
      "run cost not measured (1 model call, 0 tokens in, 0 out)\n  not measured for 1 of 1 case: why\n",
    );
  });

  it.each([60, 80, 100, 200])("fits a terminal of %i columns", (width) => {
    const wide = [
      ...SOME,
      observed(3, { costNotMeasuredReason: "many words ".repeat(30), usage: { calls: 1 } }),
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
      run_ms: { p50: null, p99: null, cases_not_measured: 0 },
      run_cost: NOTHING_SPENT,
      judge_cost: NOTHING_SPENT,
      scoring_seconds: 0.25,
      cases_per_second: 12,
      lowest: [
        { id: "", index: 1, line: 3, score: 0, feedback: "Say\nwhy. \u001B[31m" + "long ".repeat(40) },
        { id: "a", index: 0, line: 2, score: 1, feedback: "" },
      ],
      metric_fingerprint: "f1",
    });
  });

  it("has what runs and judges used, and null for a cost that was never measured", () => {
    expect(summaryJson(parts(MEASURED))).toMatchObject({
      run_ms: { p50: 400, p99: 500, cases_not_measured: 0 },
      run_cost: { usd: 0.3, cases: 3, cases_not_measured: 1, calls: 4, prompt_tokens: 1300, completion_tokens: 40 },
      judge_cost: { usd: 0.00002, cases: 2, cases_not_measured: 1, calls: 2, prompt_tokens: 50, completion_tokens: 5 },
    });
    expect(summaryJson(parts([judged(0, { calls: 1 })]))).toMatchObject({
      judge_cost: { usd: null, cases: 1, cases_not_measured: 1 },
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
