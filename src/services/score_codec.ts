import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

import type { Case, JsonBytes } from "../scoring/case.js";
import type { CaseErrorCode, CaseResult, Score } from "../scoring/result.js";
import { artifactBytes, type Payload, payloadOfValueBytes } from "./json_value.js";
import { measuredBytes } from "./measured_codec.js";
import { fieldBytes, MessageWriter, textBytes, varintBytes } from "./message_writer.js";
import { ERROR_CODES, runTime } from "./score_messages.js";
import type { CaseBatch } from "./score_service.js";

/*
 * The hot messages, read and written without objects in between: a payload stays a slice of the request, and feedback the
 * bytes that the worker wrote. Tests prove it equal to the generated code. `ScoreRequest` and `ScoreBatchRequest` have the
 * same fields, and so have the two responses.
 */

/** Reads a `ScoreRequest` or `ScoreBatchRequest`; the first case gets the index `firstIndex`. Throws where it is malformed. */
export function decodeScoreRequest(message: Uint8Array, firstIndex: number): CaseBatch {
  // A Buffer's slices cost twice as much to make.
  const bytes = new Uint8Array(message.buffer, message.byteOffset, message.byteLength);
  const reader = new BinaryReader(bytes);
  const cases: Case[] = [];
  let artifact: RawPayload;
  while (reader.pos < bytes.length) {
    const start = reader.pos;
    const tag = readTag(reader, bytes);
    if (tag === REQUEST.cases) {
      cases.push(readCase(reader, bytes, firstIndex + cases.length));
    } else if (tag === REQUEST.artifact) {
      artifact = readJsonValue(reader, bytes, artifact);
    } else {
      skip(reader, start);
    }
  }
  return { cases, artifact: artifactBytes(payload("artifact", artifact)) };
}

/** Writes results as `ScoreResponse` messages of about `RESPONSE_BYTES` at most, or of one result each where one is larger. */
export function* encodeScoreResponses(results: readonly CaseResult[]): Generator<Uint8Array, void, undefined> {
  let from = 0;
  let bytes = 0;
  for (let index = 0; index < results.length; index++) {
    const size = roughSize(results[index]);
    if (bytes + size > RESPONSE_BYTES && index > from) {
      yield encodeResults(results, from, index);
      from = index;
      bytes = 0;
    }
    bytes += size;
  }
  if (from < results.length) yield encodeResults(results, from, results.length);
}

/** Writes all results as one `ScoreBatchResponse`. */
export function encodeScoreBatchResponse(results: readonly CaseResult[]): Uint8Array {
  return encodeResults(results, 0, results.length);
}

/** Well under the 4 MiB that gRPC clients accept by default, and large enough that a message's own cost is nothing. */
export const RESPONSE_BYTES = 1024 * 1024;

// Reading

/** Field numbers and wire types, as they stand on the wire. */
const field = (number: number, type: WireType): number => (number << 3) | type;
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

function readCase(reader: BinaryReader, bytes: Uint8Array, index: number): Case {
  const end = readEnd(reader);
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

// Writing

const RESPONSE_RESULTS = field(1, WireType.LengthDelimited);
const RESULT = {
  id: field(1, WireType.LengthDelimited),
  index: field(2, WireType.Varint),
  score: field(3, WireType.LengthDelimited),
  error: field(4, WireType.LengthDelimited),
  timing: field(5, WireType.LengthDelimited),
} as const;
const SCORE = {
  value: field(1, WireType.Bit64),
  feedback: field(2, WireType.LengthDelimited),
  scores: field(3, WireType.LengthDelimited),
  sideInfo: field(4, WireType.LengthDelimited),
} as const;
const ENTRY = { key: field(1, WireType.LengthDelimited), value: field(2, WireType.Bit64) } as const;
const ERROR = { code: field(1, WireType.Varint), message: field(2, WireType.LengthDelimited) } as const;
const TIMING = {
  queuedMs: field(1, WireType.Bit64),
  metricMs: field(2, WireType.Bit64),
  runMs: field(3, WireType.Bit64),
} as const;

function encodeResults(results: readonly CaseResult[], from: number, to: number): Uint8Array {
  const sizes = results.slice(from, to).map(sizesOf);
  let size = 0;
  for (const { result } of sizes) size += fieldBytes(result);
  const writer = new MessageWriter(size);
  sizes.forEach((own, place) => {
    const result = results[from + place];
    if (result !== undefined) writeResult(writer, result, own);
  });
  return writer.finish();
}

/** The sizes of a result's parts, without their tags and lengths. */
interface Sizes {
  readonly id: number;
  readonly outcome: number;
  /** Of the error's message. */
  readonly message: number;
  readonly timing: number;
  /** The fields that runs and model calls bring, as they are written. */
  readonly measured: Uint8Array;
  readonly result: number;
}

function sizesOf(result: CaseResult): Sizes {
  const { outcome } = result;
  const id = textBytes(result.id);
  const message = outcome.kind === "error" ? textBytes(outcome.message) : 0;
  const outcomeSize = outcome.kind === "score" ? scoreSize(outcome) : errorSize(outcome.code, message);
  const runMs = runTime(result) === undefined ? 0 : DOUBLE_FIELD_BYTES;
  const timing = doubleBytes(result.queuedMs) + doubleBytes(result.metricMs) + runMs;
  const measured = measuredBytes(result);
  const index = result.index === 0 ? 0 : 1 + varintBytes(result.index);
  const own = textField(id) + index + fieldBytes(outcomeSize) + fieldBytes(timing) + measured.length;
  return { id, outcome: outcomeSize, message, timing, measured, result: own };
}

function scoreSize({ value, feedback, scores, sideInfo }: Score): number {
  let size = doubleBytes(value) + textField(feedback.length) + textField(sideInfo.length);
  for (const [name] of scores) size += fieldBytes(entrySize(textBytes(name)));
  return size;
}

/** Of a named score, whose name takes `name` bytes; an entry has both its fields, whatever they hold. */
function entrySize(name: number): number {
  return fieldBytes(name) + DOUBLE_FIELD_BYTES;
}

function errorSize(code: CaseErrorCode, message: number): number {
  return 1 + varintBytes(ERROR_CODES[code]) + textField(message);
}

/** An empty text is not written. */
function textField(length: number): number {
  return length === 0 ? 0 : fieldBytes(length);
}

/** Zero is not written; minus zero is another number. */
function doubleBytes(value: number): number {
  return Object.is(value, 0) ? 0 : DOUBLE_FIELD_BYTES;
}

const DOUBLE_FIELD_BYTES = 9;

function writeResult(writer: MessageWriter, result: CaseResult, sizes: Sizes): void {
  writer.varint(RESPONSE_RESULTS);
  writer.varint(sizes.result);
  if (sizes.id > 0) writer.text(RESULT.id, result.id, sizes.id);
  if (result.index !== 0) {
    writer.varint(RESULT.index);
    writer.varint(result.index);
  }
  if (result.outcome.kind === "score") {
    writer.varint(RESULT.score);
    writer.varint(sizes.outcome);
    writeScore(writer, result.outcome);
  } else {
    writer.varint(RESULT.error);
    writer.varint(sizes.outcome);
    writer.varint(ERROR.code);
    writer.varint(ERROR_CODES[result.outcome.code]);
    if (sizes.message > 0) writer.text(ERROR.message, result.outcome.message, sizes.message);
  }
  writer.varint(RESULT.timing);
  writer.varint(sizes.timing);
  writeDouble(writer, TIMING.queuedMs, result.queuedMs);
  writeDouble(writer, TIMING.metricMs, result.metricMs);
  const runMs = runTime(result);
  if (runMs !== undefined) writer.double(TIMING.runMs, runMs);
  writer.raw(sizes.measured);
}

function writeScore(writer: MessageWriter, score: Score): void {
  writeDouble(writer, SCORE.value, score.value);
  if (score.feedback.length > 0) writer.bytes(SCORE.feedback, score.feedback);
  for (const [name, value] of score.scores) {
    const size = textBytes(name);
    writer.varint(SCORE.scores);
    writer.varint(entrySize(size));
    writer.text(ENTRY.key, name, size);
    writer.double(ENTRY.value, value);
  }
  if (score.sideInfo.length > 0) writer.bytes(SCORE.sideInfo, score.sideInfo);
}

function writeDouble(writer: MessageWriter, tag: number, value: number): void {
  if (!Object.is(value, 0)) writer.double(tag, value);
}

/** Near enough to decide where a response ends, without measuring texts twice. */
function roughSize(result: CaseResult | undefined): number {
  if (result === undefined) return 0;
  const { id, outcome, output, observation, metricUsage } = result;
  const measured = observation === undefined && metricUsage === undefined ? 0 : MEASURED_BYTES;
  const rest = 3 * id.length + (output?.length ?? 0) + measured + RESULT_OVERHEAD_BYTES;
  if (outcome.kind === "error") return rest + 3 * outcome.message.length;
  const { feedback, sideInfo, scores } = outcome;
  let named = 0;
  for (const [name] of scores) named += 3 * name.length + ENTRY_OVERHEAD_BYTES;
  return rest + feedback.length + sideInfo.length + named;
}

/** Tags, lengths and numbers of one result, and of one named score, at most. */
const RESULT_OVERHEAD_BYTES = 64;
const ENTRY_OVERHEAD_BYTES = 16;
/** An observation and what a metric's model calls used, with a reason of some length. */
const MEASURED_BYTES = 500;
