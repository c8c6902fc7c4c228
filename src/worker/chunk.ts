import { FRAME_HEADER_BYTES, FrameKind, writeFrameHeader } from "./frames.js";
import type { ChunkCase } from "./types.js";

/** Pieces of this size or more are written from where they are; copying them costs more than another piece for `writev`. */
export const COPY_LIMIT_BYTES = 16 * 1024;

/** Follows each value of a chunk; JSON text cannot hold it. */
export const SEPARATOR = 0x1e;
const HEADER_BYTES = FRAME_HEADER_BYTES + 9;
const SEED_BYTES = 8;
const SEEDS_FOLLOW = 1;
const WITH_OBSERVATIONS = 2;

/** A chunk frame, in the pieces in which to write it: one where all payloads are small. Throws `RangeError` over 1 GiB. */
export function encodeChunk(chunk: number, cases: readonly ChunkCase[]): Uint8Array[] {
  const isSeeded = cases[0]?.seed !== undefined;
  const isObserved = cases.some(({ observation }) => observation !== undefined);
  const pieces = isObserved ? observedPieces(cases) : piecesOf(cases);
  let small = HEADER_BYTES + (isSeeded ? SEED_BYTES * cases.length : 0);
  let large = 0;
  for (const { length } of pieces) {
    if (length < COPY_LIMIT_BYTES) small += length;
    else large += length;
  }
  const buffer = Buffer.allocUnsafe(small);
  writeFrameHeader(buffer, FrameKind.chunk, small + large - FRAME_HEADER_BYTES);
  buffer.writeUInt32LE(chunk, FRAME_HEADER_BYTES);
  buffer.writeUInt32LE(cases.length, FRAME_HEADER_BYTES + 4);
  buffer[FRAME_HEADER_BYTES + 8] = (isSeeded ? SEEDS_FOLLOW : 0) | (isObserved ? WITH_OBSERVATIONS : 0);
  return gather(buffer, isSeeded ? writeSeeds(buffer, cases) : HEADER_BYTES, pieces);
}

function writeSeeds(buffer: Buffer, cases: readonly ChunkCase[]): number {
  let at = HEADER_BYTES;
  for (const { seed } of cases) at = buffer.writeBigUInt64LE(seed ?? 0n, at);
  return at;
}

/** Values that lie one after the other in memory, as those of one request do, are one piece. */
function piecesOf(cases: readonly ChunkCase[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let bytes: Uint8Array | undefined;
  let from = 0;
  let to = 0;
  for (const item of cases) {
    const { values } = item;
    if (values !== undefined && values.bytes === bytes && values.from === to) {
      to = values.to;
      continue;
    }
    if (bytes !== undefined) pieces.push(bytes.subarray(from, to));
    if (values === undefined) pushValues(pieces, item);
    bytes = values?.bytes;
    from = values?.from ?? 0;
    to = values?.to ?? 0;
  }
  if (bytes !== undefined) pieces.push(bytes.subarray(from, to));
  return pieces;
}

function observedPieces(cases: readonly ChunkCase[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (const item of cases) {
    pushValues(pieces, item);
    pieces.push(item.observation ?? NOTHING, SEPARATOR_BYTE);
  }
  return pieces;
}

function pushValues(pieces: Uint8Array[], { input, output, expected }: ChunkCase): void {
  pieces.push(input, SEPARATOR_BYTE, output, SEPARATOR_BYTE, expected ?? NOTHING, SEPARATOR_BYTE);
}

const NOTHING = new Uint8Array(0);
const SEPARATOR_BYTE = Uint8Array.of(SEPARATOR);

/** Copies the small pieces into `buffer`, from `start` on; returns its parts with the large ones between them. */
function gather(buffer: Buffer, start: number, pieces: readonly Uint8Array[]): Uint8Array[] {
  const gathered: Uint8Array[] = [];
  let partStart = 0;
  let at = start;
  for (const piece of pieces) {
    if (piece.length < COPY_LIMIT_BYTES) {
      buffer.set(piece, at);
      at += piece.length;
    } else {
      if (at > partStart) gathered.push(buffer.subarray(partStart, at));
      gathered.push(piece);
      partStart = at;
    }
  }
  if (at > partStart) gathered.push(buffer.subarray(partStart, at));
  return gathered;
}
