import {
  create,
  fromBinary,
  fromJson,
  type JsonValue as JsonValueOfProtobuf,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { type CaseSchema, JsonValueSchema } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import {
  ScoreBatchRequestSchema,
  ScoreBatchResponseSchema,
  ScoreRequestSchema,
  ScoreResponseSchema,
} from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { CaseErrorCode, CaseResult, Outcome } from "../../src/scoring/result.js";
import {
  decodeScoreRequest,
  encodeScoreBatchResponse,
  encodeScoreResponses,
  RESPONSE_BYTES,
} from "../../src/services/score_codec.js";
import { batchOfMessage, ERROR_CODES, messageOfResult } from "../../src/services/score_messages.js";
import type { CaseBatch } from "../../src/services/score_service.js";

const wellFormed = fc.string({ unit: "binary", maxLength: 60 });
const jsonText = fc.oneof(fc.json(), wellFormed);

const jsonValue: fc.Arbitrary<MessageInitShape<typeof JsonValueSchema>> = fc.oneof(
  { weight: 6, arbitrary: jsonText.map((value) => ({ kind: { case: "json" as const, value } })) },
  {
    weight: 3,
    arbitrary: fc.jsonValue().map((value) => ({ kind: { case: "value" as const, value: valueOf(value) } })),
  },
  { weight: 1, arbitrary: fc.constant({}) },
);

const caseInit: fc.Arbitrary<MessageInitShape<typeof CaseSchema>> = fc.record(
  { id: wellFormed, input: jsonValue, output: jsonValue, expected: jsonValue, observationId: wellFormed },
  { requiredKeys: [] },
);

const requestBytes = fc
  .record({ cases: fc.array(caseInit, { maxLength: 6 }), artifact: jsonValue }, { requiredKeys: ["cases"] })
  .map((request) => toBinary(ScoreRequestSchema, create(ScoreRequestSchema, request)));

describe("decodeScoreRequest", () => {
  test("reads what generated code writes as generated code reads it", () => {
    fc.assert(
      fc.property(requestBytes, fc.nat(), (bytes, firstIndex) => {
        const message = fromBinary(ScoreRequestSchema, bytes);
        expect(comparable(decodeScoreRequest(bytes, firstIndex))).toEqual(
          comparable(batchOfMessage(message, firstIndex)),
        );
      }),
    );
  });

  test("a unary request reads the same", () => {
    fc.assert(
      fc.property(requestBytes, (bytes) => {
        const message = fromBinary(ScoreBatchRequestSchema, bytes);
        expect(comparable(decodeScoreRequest(bytes, 0))).toEqual(comparable(batchOfMessage(message, 0)));
      }),
    );
  });

  // What stands twice on the wire merges: the last of a oneof wins, and a `Value` that follows another adds to it.
  test("merges repeated fields of a case as generated code does", () => {
    const payload = fc.tuple(fc.constantFrom(2, 3, 4), jsonValueBytes());
    const fields = fc.array(
      fc.oneof(
        payload.map(([no, bytes]) => lengthDelimited(no, bytes)),
        unknownField(),
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(fields, (parts) => {
        const bytes = lengthDelimited(1, Buffer.concat(parts));
        const message = fromBinary(ScoreRequestSchema, bytes);
        expect(comparable(decodeScoreRequest(bytes, 7))).toEqual(comparable(batchOfMessage(message, 7)));
      }),
    );
  });

  test("skips unknown fields at every level", () => {
    fc.assert(
      fc.property(requestBytes, unknownField(), unknownField(), (bytes, before, after) => {
        const framed = Buffer.concat([before, bytes, after]);
        expect(comparable(decodeScoreRequest(framed, 0))).toEqual(comparable(decodeScoreRequest(bytes, 0)));
      }),
    );
  });

  test("throws wherever a message is cut, as generated code does, and never reads beyond it", () => {
    fc.assert(
      fc.property(requestBytes, fc.nat(), (bytes, cut) => {
        const part = bytes.slice(0, cut % (bytes.length + 1));
        expect(outcomeOf(() => decodeScoreRequest(part, 0))).toBe(
          outcomeOf(() => fromBinary(ScoreRequestSchema, part)),
        );
      }),
    );
  });

  test.each([
    ["a case that is longer than its request", [0x0a, 0x05, 0x0a, 0x01, 0x61]],
    ["a payload that is longer than its case", [0x0a, 0x04, 0x12, 0x05, 0x0a, 0x03, 0x31, 0x32, 0x33]],
    ["an id that is longer than its case", [0x0a, 0x02, 0x0a, 0x03, 0x61, 0x62, 0x63]],
    ["field number 0", [0x02, 0x00]],
    ["an id that is not UTF-8", [0x0a, 0x03, 0x0a, 0x01, 0xff]],
    ["a group that does not end", [0x0b]],
  ])("refuses %s", (_what, bytes) => {
    expect(() => decodeScoreRequest(Uint8Array.from(bytes), 0)).toThrow();
  });

  test("hands a payload's bytes on unread, without a copy, even where they are not UTF-8", () => {
    const json = Uint8Array.from([0x22, 0xff, 0x22]);
    const bytes = lengthDelimited(1, lengthDelimited(3, lengthDelimited(1, json)));
    const [item] = decodeScoreRequest(bytes, 0).cases;
    expect(item?.output).toEqual(json);
    expect(item?.output?.buffer).toBe(bytes.buffer);
  });

  test("a Value that JSON cannot hold is its case's fault", () => {
    const nan = { kind: { case: "value" as const, value: { kind: { case: "numberValue" as const, value: NaN } } } };
    const cases = [{ input: nan }, { input: { kind: { case: "json" as const, value: "{}" } } }];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const batch = decodeScoreRequest(bytes, 0);
    expect(batch.cases[0]?.fault).toMatch(/`input\.value` cannot be turned into JSON text .* `input\.json`/);
    expect(batch.cases[1]?.fault).toBeUndefined();
  });

  test("a Value keeps the key __proto__, big integers aside", () => {
    const value = valueOf(JSON.parse('{"__proto__":{"a":1},"constructor":[true,null]}') as fc.JsonValue);
    const cases = [{ input: { kind: { case: "value" as const, value } } }];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const [item] = decodeScoreRequest(bytes, 0).cases;
    expect(Buffer.from(item?.input ?? []).toString()).toBe('{"__proto__":{"a":1},"constructor":[true,null]}');
  });
});

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

/** Payloads as text, so that a difference is readable. */
function comparable(batch: CaseBatch) {
  const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString());
  return {
    artifact: text(batch.artifact),
    cases: batch.cases.map(({ input, output, expected, ...rest }) => ({
      ...rest,
      input: text(input),
      output: text(output),
      expected: text(expected),
    })),
  };
}

function outcomeOf(decode: () => unknown): "read" | "refused" {
  try {
    decode();
    return "read";
  } catch {
    return "refused";
  }
}

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

function valueOf(json: fc.JsonValue): Value {
  return fromJson(ValueSchema, JSON.parse(JSON.stringify(json)) as JsonValueOfProtobuf);
}

function jsonValueBytes(): fc.Arbitrary<Uint8Array> {
  return fc
    .array(jsonValue, { minLength: 1, maxLength: 2 })
    .map((values) => Buffer.concat(values.map((value) => toBinary(JsonValueSchema, create(JsonValueSchema, value)))));
}

function lengthDelimited(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish();
}

function unknownField(): fc.Arbitrary<Uint8Array> {
  const number = fc.integer({ min: 100, max: 536_870_911 });
  return fc.oneof(
    fc.tuple(number, fc.uint8Array({ maxLength: 20 })).map(([no, bytes]) => lengthDelimited(no, bytes)),
    fc.tuple(number, fc.nat()).map(([no, n]) => new BinaryWriter().tag(no, WireType.Varint).uint32(n).finish()),
    fc.tuple(number, double).map(([no, n]) => new BinaryWriter().tag(no, WireType.Bit64).double(n).finish()),
    number.map((no) => new BinaryWriter().tag(no, WireType.StartGroup).tag(no, WireType.EndGroup).finish()),
  );
}
