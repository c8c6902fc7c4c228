import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { ScoreBatchResponseSchema, ScoreResponseSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { CaseErrorCode, CaseResult, Outcome } from "../../src/scoring/result.js";
import { ERROR_CODES, messageOfResult } from "../../src/services/score_messages.js";
import { encodeScoreBatchResponse, encodeScoreResponses, RESPONSE_BYTES } from "../../src/services/score_response.js";

const wellFormed = fc.string({ unit: "binary", maxLength: 60 });
const double = fc.double({ noNaN: true, noDefaultInfinity: true });
const utf8 = wellFormed.map((text) => Buffer.from(text));
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({
    kind: fc.constant("score" as const),
    value: double,
    feedback: utf8,
    scores: fc.uniqueArray(fc.tuple(fc.oneof(wellFormed, fc.constant("__proto__")), double), {
      selector: ([name]) => name,
    }),
    sideInfo: utf8,
  }),
  fc.record({
    kind: fc.constant("error" as const),
    code: fc.constantFrom(...(Object.keys(ERROR_CODES) as CaseErrorCode[])),
    message: wellFormed,
    traceback: wellFormed,
  }),
);
const result: fc.Arbitrary<CaseResult> = fc.record({
  id: wellFormed,
  index: fc.nat({ max: 0xffffffff }),
  outcome,
  queuedMs: double,
  metricMs: double,
});

describe("encodeScoreResponses", () => {
  test("writes what generated code reads as the same messages", () => {
    fc.assert(
      fc.property(fc.array(result, { maxLength: 6 }), (results) => {
        const read = [...encodeScoreResponses(results)].flatMap(
          (bytes) => fromBinary(ScoreResponseSchema, bytes).results,
        );
        expect(read).toEqual(results.map(messageOfResult));
        expect(fromBinary(ScoreBatchResponseSchema, encodeScoreBatchResponse(results)).results).toEqual(read);
      }),
    );
  });

  test("gives nothing for nothing, and one message for what fits into one", () => {
    expect([...encodeScoreResponses([])]).toEqual([]);
    expect([...encodeScoreResponses(Array.from({ length: 256 }, (_, index) => scoredWith(index, 40)))]).toHaveLength(1);
  });

  test("splits where the next result would not fit, and gives a larger one a message of its own", () => {
    const sizes = [10, RESPONSE_BYTES / 2, RESPONSE_BYTES / 2, 3 * RESPONSE_BYTES, 10, 10];
    const messages = [...encodeScoreResponses(sizes.map((size, index) => scoredWith(index, size)))];
    const indexes = messages.map((bytes) => fromBinary(ScoreResponseSchema, bytes).results.map(({ index }) => index));
    expect(indexes).toEqual([[0, 1], [2], [3], [4, 5]]);
    expect(messages.filter(({ length }) => length > RESPONSE_BYTES)).toHaveLength(1);
  });
});

function scoredWith(index: number, feedbackBytes: number): CaseResult {
  const feedback = Buffer.alloc(feedbackBytes, "x");
  return {
    id: "",
    index,
    outcome: { kind: "score", value: 1, feedback, scores: [], sideInfo: new Uint8Array() },
    queuedMs: 1,
    metricMs: 1,
  };
}
