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
import { ScoreBatchRequestSchema, ScoreRequestSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { batchOfMessage } from "../../src/services/score_messages.js";
import { decodeScoreRequest } from "../../src/services/score_request.js";
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
        expect(comparable(decoded(bytes, firstIndex))).toEqual(comparable(batchOfMessage(message, firstIndex)));
      }),
    );
  });

  test("a unary request reads the same", () => {
    fc.assert(
      fc.property(requestBytes, (bytes) => {
        const message = fromBinary(ScoreBatchRequestSchema, bytes);
        expect(comparable(decoded(bytes))).toEqual(comparable(batchOfMessage(message, 0)));
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
        expect(comparable(decoded(bytes, 7))).toEqual(comparable(batchOfMessage(message, 7)));
      }),
    );
  });

  test("skips unknown fields at every level", () => {
    fc.assert(
      fc.property(requestBytes, unknownField(), unknownField(), (bytes, before, after) => {
        const framed = Buffer.concat([before, bytes, after]);
        expect(comparable(decoded(framed))).toEqual(comparable(decoded(bytes)));
      }),
    );
  });

  test("throws wherever a message is cut, as generated code does, and never reads beyond it", () => {
    fc.assert(
      fc.property(requestBytes, fc.nat(), (bytes, cut) => {
        const part = bytes.slice(0, cut % (bytes.length + 1));
        expect(outcomeOf(() => decoded(part))).toBe(outcomeOf(() => fromBinary(ScoreRequestSchema, part)));
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
    const [item] = decodeScoreRequest(bytes, 0);
    expect(item?.output).toEqual(json);
    expect(item?.output?.buffer).toBe(bytes.buffer);
  });

  test("a Value that JSON cannot hold is its case's fault", () => {
    const nan = { kind: { case: "value" as const, value: { kind: { case: "numberValue" as const, value: NaN } } } };
    const cases = [{ input: nan }, { input: { kind: { case: "json" as const, value: "{}" } } }];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const batch = decoded(bytes);
    expect(batch[0]?.fault).toMatch(/`input\.value` cannot be turned into JSON text .* `input\.json`/);
    expect(batch[1]?.fault).toBeUndefined();
  });

  test("a Value keeps the key __proto__, big integers aside", () => {
    const value = valueOf(JSON.parse('{"__proto__":{"a":1},"constructor":[true,null]}') as fc.JsonValue);
    const cases = [{ input: { kind: { case: "value" as const, value } } }];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const [item] = decoded(bytes);
    expect(Buffer.from(item?.input ?? []).toString()).toBe('{"__proto__":{"a":1},"constructor":[true,null]}');
  });

  test("moves the payloads of usual cases together, in the message itself, as a chunk carries them", () => {
    const cases = [
      { id: "a", input: json('{"q":1}'), output: json('"x"'), expected: json('{"y":2}') },
      { id: "b", input: json("{}"), output: json(`"${"long ".repeat(40)}"`) },
    ];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const batch = decodeScoreRequest(bytes, 0);
    const values = batch.map((item) => item.values ?? expect.fail("its values lie apart"));
    const [first, second] = values;
    expect(first?.to).toBe(second?.from);
    expect(first?.bytes.buffer).toBe(bytes.buffer);
    const text = Buffer.from(first?.bytes.subarray(first.from, second?.to) ?? []).toString();
    expect(text).toBe(`{"q":1}\x1e"x"\x1e{"y":2}\x1e{}\x1e"${"long ".repeat(40)}"\x1e\x1e`);
  });

  test("leaves cases of another form where they are, between usual ones", () => {
    const usual = (id: string) => ({
      id,
      input: json(`{"of":"${id}"}`),
      output: json("30"),
      expected: json('{"n":30}'),
    });
    const others = [
      { id: "é", input: json("{}"), output: json("1") },
      { id: "no output", input: json("{}") },
      { id: "a separator", input: json("{}"), output: json('"\x1e"') },
      { id: "an empty text", input: json("{}"), output: json(""), expected: json("{}") },
      { id: "a Value", input: { kind: { case: "value" as const, value: valueOf({ a: [30] }) } }, output: json("2") },
    ];
    const cases = others.flatMap((other, place) => [usual(`u${place}`), other]);
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
    const batch = decoded(bytes);
    expect(comparable(batch)).toEqual(comparable(batchOfMessage(fromBinary(ScoreRequestSchema, bytes), 0)));
    expect(batch.map(({ values }) => values !== undefined)).toEqual(cases.map((_, place) => place % 2 === 0));
  });

  test("gives the request's artifact to each of its cases", () => {
    const cases = [{ input: json("{}"), output: json("1") }, { input: json("{}") }];
    const bytes = toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases, artifact: json('"the prompt"') }));
    expect(decoded(bytes).map(({ artifact }) => Buffer.from(artifact ?? []).toString())).toEqual([
      '"the prompt"',
      '"the prompt"',
    ]);
  });
});

/** Payloads as text, so that a difference is readable. */
function comparable(batch: CaseBatch) {
  const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString());
  return batch.map(({ id, index, input, output, expected, observationId, artifact, fault }) => ({
    id,
    index,
    input: text(input),
    output: text(output),
    expected: text(expected),
    observationId,
    artifact: text(artifact),
    fault,
  }));
}

/** Decoding takes a message over, so that one that is still needed is copied. */
function decoded(message: Uint8Array, firstIndex = 0): CaseBatch {
  return decodeScoreRequest(message.slice(), firstIndex);
}

function outcomeOf(decode: () => unknown): "read" | "refused" {
  try {
    decode();
    return "read";
  } catch {
    return "refused";
  }
}

function json(value: string): MessageInitShape<typeof JsonValueSchema> {
  return { kind: { case: "json", value } };
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
    fc.tuple(number, fc.double()).map(([no, n]) => new BinaryWriter().tag(no, WireType.Bit64).double(n).finish()),
    number.map((no) => new BinaryWriter().tag(no, WireType.StartGroup).tag(no, WireType.EndGroup).finish()),
  );
}
