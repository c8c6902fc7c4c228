import { create, toBinary } from "@bufbuild/protobuf";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { scanResults } from "../../bench/scan_results.js";
import { CaseErrorCode } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreResponseSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";

type Visited = readonly [index: number, value: number | undefined, feedbackBytes: number];

function scan(response: Uint8Array): { count: number; visited: Visited[] } {
  const visited: Visited[] = [];
  const count = scanResults(Buffer.from(response), (...each) => visited.push(each));
  return { count, visited };
}

const score = fc.record({
  value: fc.double({ noNaN: true }),
  feedback: fc.string({ unit: "binary" }),
  scores: fc.dictionary(fc.string({ unit: "binary-ascii" }), fc.double({ noNaN: true })),
  sideInfoJson: fc.string(),
});
const result = fc.record({
  id: fc.string(),
  index: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  score: fc.option(score, { nil: undefined }),
});

test("finds in every response what generated code wrote into it", () => {
  fc.assert(
    fc.property(fc.array(result), (results) => {
      const response = create(ScoreResponseSchema, {
        results: results.map(({ id, index, score }) => ({
          id,
          index,
          outcome:
            score === undefined
              ? ({ case: "error", value: { code: CaseErrorCode.METRIC_CRASHED, message: "killed" } } as const)
              : ({ case: "score", value: score } as const),
          timing: { queuedMs: 1.5, metricMs: 0.25 },
        })),
      });
      expect(scan(toBinary(ScoreResponseSchema, response))).toEqual({
        count: results.length,
        visited: results.map(({ index, score }) => [index, score?.value, Buffer.byteLength(score?.feedback ?? "")]),
      });
    }),
  );
});

test("walks over fields that it does not know", () => {
  const response = create(ScoreResponseSchema, {
    results: [
      {
        index: 7,
        outcome: { case: "score", value: { value: 0.5, feedback: "Close." } },
        observation: { id: "o", runMs: 12, usage: { calls: 3, costUsd: 0.01 } },
        output: { kind: { case: "value", value: create(ValueSchema, { kind: nested() }) } },
      },
    ],
  });
  expect(scan(toBinary(ScoreResponseSchema, response)).visited).toEqual([[7, 0.5, 6]]);
});

test("refuses a response that is cut short", () => {
  const whole = toBinary(
    ScoreResponseSchema,
    create(ScoreResponseSchema, {
      results: [{ index: 1, outcome: { case: "score", value: { feedback: "Correct." } } }],
    }),
  );
  expect(() => scan(whole.subarray(0, whole.length - 1))).toThrow("runs past the response's end");
});

function nested() {
  const fields = { a: create(ValueSchema, { kind: { case: "numberValue", value: 1 } }) };
  return { case: "structValue", value: create(StructSchema, { fields }) } as const;
}
