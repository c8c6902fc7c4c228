import { fromBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { makeCases } from "../../bench/cases.js";
import { ScoreRequestSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";

test("messages, scores and JSON lines tell the same cases", () => {
  const pool = makeCases(3, 32);
  const cases = pool.messages.flatMap((message) => fromBinary(ScoreRequestSchema, message).cases);
  const lines = pool.jsonLines.trimEnd().split("\n");
  const payloads = cases.map(({ input, output, expected }) =>
    [input, output, expected].map((value) =>
      value?.kind.case === "json" ? (JSON.parse(value.kind.value) as unknown) : value,
    ),
  );
  expect(payloads.map((payload) => JSON.stringify(payload))).toEqual(lines);
  const scores = payloads.map(([, output, expected]) => (output === (expected as { label: string }).label ? 1 : 0));
  expect(scores).toEqual([...pool.scores]);
  expect(new Set(cases.map(({ id }) => id)).size).toBe(96);
});

test("a case takes about 80 bytes", () => {
  const { messages } = makeCases(32, 256);
  const bytes = messages.reduce((sum, message) => sum + message.length, 0) / (32 * 256);
  expect(bytes).toBeGreaterThan(75);
  expect(bytes).toBeLessThan(85);
});
