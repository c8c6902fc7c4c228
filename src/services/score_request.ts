import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

import { type Case, type JsonBytes, ReceivedCase } from "../scoring/case.js";
import { SEPARATOR } from "../worker/chunk.js";
import { artifactBytes, type Payload, payloadOfValueBytes } from "./json_value.js";
import type { CaseBatch } from "./score_service.js";
import { field } from "./wire.js";

/*
 * Requests are read without objects in between: a payload stays a slice of the request. Tests prove it equal to the generated code.
 * `ScoreRequest` and `ScoreBatchRequest` have the same fields.
 */

/**
 * Reads a `ScoreRequest` or `ScoreBatchRequest`; the first case gets the index `firstIndex`. Takes the message over: payloads are moved in it.
 * Throws where it is malformed.
 */
export function decodeScoreRequest(message: Uint8Array, firstIndex: number): CaseBatch {
  // A Buffer's slices cost twice as much to make.
  const bytes = new Uint8Array(message.buffer, message.byteOffset, message.byteLength);
  const reader = new BinaryReader(bytes);
  const usual = new UsualCases(bytes);
  const cases: Case[] = [];
  let artifact: RawPayload;
  while (reader.pos < bytes.length) {
    const start = reader.pos;
    const tag = readTag(reader, bytes);
    if (tag === REQUEST.cases) {
      const end = readEnd(reader);
      const index = firstIndex + cases.length;
      const item = usual.read(reader.pos, end, index);
      if (item !== undefined) reader.pos = end;
      cases.push(item ?? readCase(reader, bytes, end, index));
    } else if (tag === REQUEST.artifact) {
      artifact = readJsonValue(reader, bytes, artifact);
    } else {
      skip(reader, start);
    }
  }
  const run = artifactBytes(payload("artifact", artifact));
  if (run !== undefined) for (const item of cases) item.artifact = run;
  return cases;
}

const REQUEST = { cases: field(1, WireType.LengthDelimited), artifact: field(2, WireType.LengthDelimited) } as const;
const CASE = {
  id: field(1, WireType.LengthDelimited),
  input: field(2, WireType.LengthDelimited),
  output: field(3, WireType.LengthDelimited),
  expected: field(4, WireType.LengthDelimited),
  observationId: field(5, WireType.LengthDelimited),
} as const;
const JSON_VALUE = { json: field(1, WireType.LengthDelimited), value: field(2, WireType.LengthDelimited) } as const;

/** A serialized `google.protobuf.Value`; several on the wire merge by standing one after the other. */
class ValueBytes {
  constructor(readonly bytes: Uint8Array) {}
}

/** What a `JsonValue` holds so far: JSON text, a `Value`, or nothing. */
type RawPayload = JsonBytes | ValueBytes | undefined;

/** Reads a case of any form, up to `end`. */
function readCase(reader: BinaryReader, bytes: Uint8Array, end: number, index: number): Case {
  let id = "";
  let input: RawPayload;
  let output: RawPayload;
  let expected: RawPayload;
  let observationId = "";
  while (reader.pos < end) {
    const start = reader.pos;
    const tag = readTag(reader, bytes);
    switch (tag) {
      case CASE.id:
        id = reader.string(true);
        break;
      case CASE.input:
        input = readJsonValue(reader, bytes, input);
        break;
      case CASE.output:
        output = readJsonValue(reader, bytes, output);
        break;
      case CASE.expected:
        expected = readJsonValue(reader, bytes, expected);
        break;
      case CASE.observationId:
        observationId = reader.string(true);
        break;
      default:
        skip(reader, start);
    }
  }
  assertEnd(reader, end);
  if (input instanceof ValueBytes || output instanceof ValueBytes || expected instanceof ValueBytes) {
    return caseWithValues({ id, index, observationId }, input, output, expected);
  }
  return { id, index, input, output, expected, observationId };
}

function caseWithValues(
  rest: Pick<Case, "id" | "index" | "observationId">,
  ...raw: [input: RawPayload, output: RawPayload, expected: RawPayload]
): Case {
  const input = payload("input", raw[0]);
  const output = payload("output", raw[1]);
  const expected = payload("expected", raw[2]);
  const fault = input.fault ?? output.fault ?? expected.fault;
  const item = { ...rest, input: input.bytes, output: output.bytes, expected: expected.bytes };
  return fault === undefined ? item : { ...item, fault };
}

function payload(name: string, raw: RawPayload): Payload {
  return raw instanceof ValueBytes ? payloadOfValueBytes(name, raw.bytes) : { bytes: raw };
}

function readJsonValue(reader: BinaryReader, bytes: Uint8Array, before: RawPayload): RawPayload {
  const end = readEnd(reader);
  let raw = before;
  while (reader.pos < end) {
    const start = reader.pos;
    const tag = readTag(reader, bytes);
    if (tag === JSON_VALUE.json) {
      raw = reader.bytes();
    } else if (tag === JSON_VALUE.value) {
      raw = new ValueBytes(raw instanceof ValueBytes ? joined(raw.bytes, reader.bytes()) : reader.bytes());
    } else {
      skip(reader, start);
    }
  }
  assertEnd(reader, end);
  return raw;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** A tag of one byte, as all of ours are, or what `BinaryReader` makes of a longer one. */
function readTag(reader: BinaryReader, bytes: Uint8Array): number {
  const first = bytes[reader.pos];
  if (first !== undefined && first < 0x80) {
    reader.pos += 1;
    return first;
  }
  const [number, type] = reader.tag();
  return ((number << 3) | type) >>> 0;
}

/** Passes over the field at `start`, which is none of ours. */
function skip(reader: BinaryReader, start: number): void {
  reader.pos = start;
  const [number, type] = reader.tag();
  reader.skip(type, number);
}

function readEnd(reader: BinaryReader): number {
  const length = reader.uint32();
  return reader.pos + length;
}

/** A field that ends beyond its message was cut, or is of another message. */
function assertEnd(reader: BinaryReader, end: number): void {
  if (reader.pos !== end || end > reader.len) throw new RangeError("a field ends beyond its message");
}

/**
 * Reads cases of the form that clients write: an id, input, output and expected as JSON text, an observation; in this order, and each at most
 * once. Moves their payloads together in place, as a chunk carries them: each is shorter there than on the wire.
 */
class UsualCases {
  readonly #buffer: Buffer;
  #at = 0;
  /** Where the next payload goes; everything before is taken. */
  #writeAt = 0;
  /** The next separator byte at or after the payload that was looked at last. */
  #separatorAt = -1;
  // What the last step found.
  #from = 0;
  #to = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The case that stands from `start` to `end`; `undefined`, with nothing changed, where it has another form. */
  read(start: number, end: number, index: number): ReceivedCase | undefined {
    const before = this.#writeAt;
    // Where a case has another form, its payloads stay where they are.
    this.#writeAt = end;
    if (end > this.bytes.length) return undefined;
    this.#at = start;
    const id = this.#text(CASE.id, end);
    if (id === undefined || !this.#payload(CASE.input, end)) return undefined;
    const inputFrom = this.#from;
    const inputTo = this.#to;
    if (!this.#payload(CASE.output, end)) return undefined;
    const outputFrom = this.#from;
    const outputTo = this.#to;
    let expectedFrom = outputTo;
    let expectedTo = outputTo;
    if (this.#at < end && this.bytes[this.#at] === CASE.expected) {
      if (!this.#payload(CASE.expected, end)) return undefined;
      expectedFrom = this.#from;
      expectedTo = this.#to;
    }
    const observationId = this.#text(CASE.observationId, end);
    if (observationId === undefined || this.#at !== end) return undefined;
    this.#writeAt = before;
    this.#move(inputFrom, inputTo);
    const outputAt = this.#writeAt;
    this.#move(outputFrom, outputTo);
    const expectedAt = this.#writeAt;
    this.#move(expectedFrom, expectedTo);
    return new ReceivedCase(id, index, observationId, this.bytes, before, outputAt, expectedAt, this.#writeAt);
  }

  /** A field of ASCII text, empty where it is absent; `undefined`: of another form. */
  #text(tag: number, end: number): string | undefined {
    const { bytes } = this;
    if (this.#at >= end || bytes[this.#at] !== tag) return "";
    this.#at += 1;
    const length = this.#length();
    const from = this.#at;
    const to = from + length;
    if (length < 0 || to > end) return undefined;
    for (let at = from; at < to; at++) if ((bytes[at] ?? 0) > 0x7f) return undefined;
    this.#at = to;
    return this.#buffer.toString("latin1", from, to);
  }

  /** A field of one JSON text, fit for a chunk. */
  #payload(tag: number, end: number): boolean {
    const { bytes } = this;
    if (this.#at >= end || bytes[this.#at] !== tag) return false;
    this.#at += 1;
    const outer = this.#length();
    const to = this.#at + outer;
    if (outer < 0 || to > end || bytes[this.#at] !== JSON_VALUE.json) return false;
    this.#at += 1;
    const inner = this.#length();
    const from = this.#at;
    if (inner <= 0 || from + inner !== to || this.#hasSeparator(from, to)) return false;
    this.#from = from;
    this.#to = to;
    this.#at = to;
    return true;
  }

  /** A length of up to 28 bits; -1: a larger one. */
  #length(): number {
    const { bytes } = this;
    let length = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[this.#at++] ?? 0;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) return length;
    }
    return -1;
  }

  #hasSeparator(from: number, to: number): boolean {
    if (this.#separatorAt < from) {
      const found = this.bytes.indexOf(SEPARATOR, from);
      this.#separatorAt = found < 0 ? this.bytes.length : found;
    }
    return this.#separatorAt < to;
  }

  #move(from: number, to: number): void {
    const { bytes } = this;
    let at = this.#writeAt;
    if (to - from > SHORT_BYTES) {
      bytes.copyWithin(at, from, to);
      at += to - from;
    } else {
      for (let next = from; next < to; next++) bytes[at++] = bytes[next] ?? 0;
    }
    bytes[at++] = SEPARATOR;
    this.#writeAt = at;
  }
}

/** Up to here a loop moves bytes faster than a call does. */
const SHORT_BYTES = 64;
