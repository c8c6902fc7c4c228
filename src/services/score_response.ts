import { WireType } from "@bufbuild/protobuf/wire";

import type { CaseErrorCode, CaseResult, Score } from "../scoring/result.js";
import { measuredBytes } from "./measured_codec.js";
import { fieldBytes, MessageWriter, textBytes, varintBytes } from "./message_writer.js";
import { ERROR_CODES, runTime } from "./score_messages.js";
import { field } from "./wire.js";

/*
 * Responses are written without objects in between: feedback stays the bytes that the worker wrote. Tests prove it equal to the generated code.
 * `ScoreResponse` and `ScoreBatchResponse` have the same fields.
 */

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
  let size = 0;
  for (let index = from; index < to; index++) size += roughSize(results[index]);
  const writer = new MessageWriter(size);
  for (let index = from; index < to; index++) {
    const result = results[index];
    if (result !== undefined) writeResult(writer, result);
  }
  return writer.finish();
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

/** A length stands before what it measures, so that each part is measured first. */
function writeResult(writer: MessageWriter, result: CaseResult): void {
  const { outcome, queuedMs, metricMs } = result;
  const id = textBytes(result.id);
  const message = outcome.kind === "error" ? textBytes(outcome.message) : 0;
  const outcomeSize = outcome.kind === "score" ? scoreSize(outcome) : errorSize(outcome.code, message);
  const runMs = runTime(result);
  const timing = doubleBytes(queuedMs) + doubleBytes(metricMs) + (runMs === undefined ? 0 : DOUBLE_FIELD_BYTES);
  const measured = measuredBytes(result);
  const index = result.index === 0 ? 0 : 1 + varintBytes(result.index);

  const size = textField(id) + index + fieldBytes(outcomeSize) + fieldBytes(timing) + measured.length;
  writer.reserve(fieldBytes(size));
  writer.varint(RESPONSE_RESULTS);
  writer.varint(size);
  if (id > 0) writer.text(RESULT.id, result.id, id);
  if (result.index !== 0) {
    writer.varint(RESULT.index);
    writer.varint(result.index);
  }
  if (outcome.kind === "score") {
    writer.varint(RESULT.score);
    writer.varint(outcomeSize);
    writeScore(writer, outcome);
  } else {
    writer.varint(RESULT.error);
    writer.varint(outcomeSize);
    writer.varint(ERROR.code);
    writer.varint(ERROR_CODES[outcome.code]);
    if (message > 0) writer.text(ERROR.message, outcome.message, message);
  }
  writer.varint(RESULT.timing);
  writer.varint(timing);
  writeDouble(writer, TIMING.queuedMs, queuedMs);
  writeDouble(writer, TIMING.metricMs, metricMs);
  if (runMs !== undefined) writer.double(TIMING.runMs, runMs);
  if (measured.length > 0) writer.raw(measured);
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
  const rest = id.length + (output?.length ?? 0) + measured + RESULT_OVERHEAD_BYTES;
  if (outcome.kind === "error") return rest + outcome.message.length;
  const { feedback, sideInfo, scores } = outcome;
  let named = 0;
  for (const [name] of scores) named += name.length + ENTRY_OVERHEAD_BYTES;
  return rest + feedback.length + sideInfo.length + named;
}

/** Tags, lengths and numbers of one result, and of one named score. */
const RESULT_OVERHEAD_BYTES = 64;
const ENTRY_OVERHEAD_BYTES = 16;
/** An observation and what a metric's model calls used, with a reason of some length. */
const MEASURED_BYTES = 500;
