import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import type { JsonValueSchema } from "../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreRequestSchema } from "../src/gen/skynet/scoring/v1/score_service_pb.js";

/** A pool of different cases, encoded beforehand, that a stream sends round and round. */
export interface CasePool {
  /** Encoded `ScoreRequest` messages of `casesPerMessage` cases each. */
  readonly messages: readonly Buffer[];
  readonly casesPerMessage: number;
  /** The score that the metric must give, a case: 0 or 1. */
  readonly scores: Uint8Array;
  /** The same cases as JSON, one `[input, output, expected]` a line, for a program that calls the metric itself. */
  readonly jsonLines: string;
}

/** One case as plain values. */
export interface PlainCase {
  readonly id: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly output: unknown;
  readonly expected: Readonly<Record<string, unknown>>;
}

/** Makes `messageCount` messages of cases of about 80 bytes for `bench/metric.py`; three in four are correct. */
export function makeCases(messageCount: number, casesPerMessage: number): CasePool {
  const cases = Array.from({ length: messageCount * casesPerMessage }, (_, index) => makeCase(index));
  return {
    messages: Array.from({ length: messageCount }, (_, message) => {
      const first = message * casesPerMessage;
      return encodeRequest(cases.slice(first, first + casesPerMessage));
    }),
    casesPerMessage,
    scores: Uint8Array.from(cases, ({ output, expected }) => (output === expected["label"] ? 1 : 0)),
    jsonLines: cases.map(({ input, output, expected }) => `${JSON.stringify([input, output, expected])}\n`).join(""),
  };
}

/** An encoded `ScoreRequest`. */
export function encodeRequest(cases: readonly PlainCase[]): Buffer {
  const request = create(ScoreRequestSchema, {
    cases: cases.map(({ id, input, output, expected }) => ({
      id,
      input: jsonValue(input),
      output: jsonValue(output),
      expected: jsonValue(expected),
    })),
  });
  return Buffer.from(toBinary(ScoreRequestSchema, request));
}

const LABELS = ["billing", "refund", "account", "bug"] as const;

function makeCase(index: number): PlainCase {
  const label = LABELS[index % LABELS.length] ?? LABELS[0];
  const wrong = Math.floor(index / LABELS.length) % 4 === 3;
  return {
    id: `case-${index}`,
    input: { text: `ticket ${index}: help` },
    output: wrong ? "other" : label,
    expected: { label },
  };
}

function jsonValue(value: unknown): MessageInitShape<typeof JsonValueSchema> {
  return { kind: { case: "json", value: JSON.stringify(value) } };
}
