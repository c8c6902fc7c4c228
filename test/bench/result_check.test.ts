import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { makeCases } from "../../bench/cases.js";
import { ResultCheck } from "../../bench/result_check.js";
import { ScoreResponseSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";

const pool = makeCases(2, 16);

/** An encoded response with the right result for each index. */
function respond(indexes: readonly number[], change: { readonly value?: number; readonly error?: true } = {}): Buffer {
  const results = indexes.map((index) => ({
    index,
    outcome: change.error
      ? ({ case: "error", value: { message: "it raised" } } as const)
      : ({ case: "score", value: { value: change.value ?? scoreOf(index), feedback: "four" } } as const),
  }));
  return Buffer.from(toBinary(ScoreResponseSchema, create(ScoreResponseSchema, { results })));
}

function scoreOf(index: number): number {
  return pool.scores[index % pool.scores.length] ?? Number.NaN;
}

const all = Array.from({ length: 64 }, (_, index) => index);

test("takes each result once, in any order and over several rounds of the pool", () => {
  const check = new ResultCheck(pool, 2);
  expect(check.take(respond(all.slice(40)))).toBe(24);
  expect(check.take(respond(all.slice(0, 40).reverse()))).toBe(40);
  expect(check.finish()).toEqual({ cases: 64, meanScore: 0.75, meanFeedbackBytes: 4 });
});

test.each([
  ["a result that comes twice", () => respond([3, 3]), "result 3 came twice"],
  ["a result that nobody asked for", () => respond([64]), "result 64 came twice, or was never asked for (64 cases)"],
  ["a wrong score", () => respond([0], { value: 0.5 }), "case 0 scored 0.5, expected 1"],
  ["an error in place of a score", () => respond([0], { error: true }), "case 0 scored an error, expected 1"],
])("refuses %s", (_, response, message) => {
  expect(() => new ResultCheck(pool, 2).take(response())).toThrow(message);
});

test("refuses a stream that ends early", () => {
  const check = new ResultCheck(pool, 2);
  check.take(respond(all.slice(1)));
  expect(() => check.finish()).toThrow("1 of 64 results are missing");
});
