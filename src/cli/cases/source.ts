import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { addAbortSignal } from "node:stream";

import { UsageError } from "../exit.js";
import { wordsFor } from "../input_file.js";
import type { Row } from "./row.js";

/** Where cases come from, and how errors name it. */
export interface CaseSource {
  /** The file as the user gave it, or "standard input". */
  readonly name: string;
  /** As what the file is read and who says so, such as "JSON (--format json)"; for errors that come of the wrong format. */
  readonly readAs: string;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Opens a case file, or standard input for `-`. One byte order mark at the beginning is dropped. */
export function openSource(file: string, signal: AbortSignal): Omit<CaseSource, "readAs"> {
  const stream = addAbortSignal(
    signal,
    file === "-" ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES }),
  );
  const name = file === "-" ? "standard input" : file;
  return { name, chunks: dropByteOrderMark(readable(name, stream)) };
}

/** An error at a place of a case file. */
export function caseFileError(source: Pick<CaseSource, "name">, line: number, message: string): UsageError {
  return new UsageError(`${source.name}:${String(line)}: ${message}`);
}

/** An error of a case, at its place in the file. */
export function caseError(source: Pick<CaseSource, "name">, row: Row, message: string): UsageError {
  return caseFileError(source, row.line, row.ordinal === undefined ? message : `${placeOf(row)}: ${message}`);
}

/** How people are told of a case that has no id. */
export function placeOf({ line, ordinal }: Pick<Row, "line" | "ordinal">): string {
  return ordinal === undefined ? `line ${String(line)}` : `case ${String(ordinal)}`;
}

/** Everything in one piece. */
export async function readWhole(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

/** The lines, without their line ends and with their numbers from 1, split at the byte 0x0A alone. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly [line: number, text: Uint8Array]> {
  let number = 0;
  let pending: Uint8Array[] = [];
  for await (const chunk of chunks) {
    let begin = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, begin)) {
      pending.push(chunk.subarray(begin, end));
      number += 1;
      yield [number, withoutCarriageReturn(join(pending))];
      pending = [];
      begin = end + 1;
    }
    if (begin < chunk.length) pending.push(chunk.subarray(begin));
  }
  if (pending.length > 0) yield [number + 1, withoutCarriageReturn(join(pending))];
}

/** The 1-based line on which the byte at `offset` stands. */
export function lineAt(text: Uint8Array, offset: number): number {
  let line = 1;
  for (let at = text.indexOf(LINE_FEED); at >= 0 && at < offset; at = text.indexOf(LINE_FEED, at + 1)) line += 1;
  return line;
}

/** Throws, naming the line, where the text is not UTF-8. `firstLine` is the line on which it begins. */
export function checkUtf8(source: CaseSource, text: Uint8Array, firstLine: number): void {
  if (isUtf8(text)) return;
  let line = firstLine;
  let begin = 0;
  for (
    let end = text.indexOf(LINE_FEED);
    end >= 0 && isUtf8(text.subarray(begin, end));
    end = text.indexOf(LINE_FEED, begin)
  ) {
    line += 1;
    begin = end + 1;
  }
  throw caseFileError(source, line, "the line is not UTF-8; save the file as UTF-8");
}

async function* readable(name: string, stream: NodeJS.ReadableStream): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
  } catch (error) {
    if (!(error instanceof Error) || error.name === "AbortError") throw error;
    throw new UsageError(`cannot read the cases from ${name}: ${wordsFor(error)}`);
  }
}

async function* dropByteOrderMark(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < BYTE_ORDER_MARK.length) continue;
    yield withoutByteOrderMark(head);
    head = undefined;
  }
  if (head !== undefined && head.length > 0) yield head;
}

function withoutByteOrderMark(head: Buffer): Uint8Array {
  const marked = head.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  return marked ? head.subarray(BYTE_ORDER_MARK.length) : head;
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
}

function withoutCarriageReturn(line: Uint8Array): Uint8Array {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Large enough that a chunk's fixed cost does not show. */
const CHUNK_BYTES = 1024 * 1024;
