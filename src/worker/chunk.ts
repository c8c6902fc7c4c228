import { FRAME_HEADER_BYTES, FrameKind, writeFrameHeader } from "./frames.js";
import type { ChunkCase } from "./types.js";

/** Payloads of this size or more are written from where they are; copying them costs more than another piece for `writev`. */
export const COPY_LIMIT_BYTES = 16 * 1024;

const SEPARATOR = 0x1e;
const HEADER_BYTES = FRAME_HEADER_BYTES + 9;
const SEED_BYTES = 8;
const SEEDS_FOLLOW = 1;
const WITH_OBSERVATIONS = 2;

/** A chunk frame, in the pieces in which to write it: one where all payloads are small. Throws `RangeError` over 1 GiB. */
export function encodeChunk(chunk: number, cases: readonly ChunkCase[]): Uint8Array[] {
  const seeded = cases[0]?.seed !== undefined;
  const observed = cases.some(({ observation }) => observation !== undefined);
  const { payloadBytes, copiedBytes } = measure(cases, seeded, observed);
  const buffer = Buffer.allocUnsafe(copiedBytes);
  writeFrameHeader(buffer, FrameKind.chunk, payloadBytes);
  buffer.writeUInt32LE(chunk, FRAME_HEADER_BYTES);
  buffer.writeUInt32LE(cases.length, FRAME_HEADER_BYTES + 4);
  buffer[FRAME_HEADER_BYTES + 8] = (seeded ? SEEDS_FOLLOW : 0) | (observed ? WITH_OBSERVATIONS : 0);
  const at = seeded ? writeSeeds(buffer, cases) : HEADER_BYTES;
  return new ChunkWriter(buffer, at).write(cases, observed);
}

function measure(
  cases: readonly ChunkCase[],
  seeded: boolean,
  observed: boolean,
): { payloadBytes: number; copiedBytes: number } {
  let copied = HEADER_BYTES + (seeded ? SEED_BYTES * cases.length : 0);
  let large = 0;
  for (const { input, output, expected, observation } of cases) {
    copied += observed ? 4 : 3;
    copied += observation?.length ?? 0;
    if (input.length < COPY_LIMIT_BYTES) copied += input.length;
    else large += input.length;
    if (output.length < COPY_LIMIT_BYTES) copied += output.length;
    else large += output.length;
    if (expected === undefined) continue;
    if (expected.length < COPY_LIMIT_BYTES) copied += expected.length;
    else large += expected.length;
  }
  return { payloadBytes: copied + large - FRAME_HEADER_BYTES, copiedBytes: copied };
}

function writeSeeds(buffer: Buffer, cases: readonly ChunkCase[]): number {
  let at = HEADER_BYTES;
  for (const { seed } of cases) at = buffer.writeBigUInt64LE(seed ?? 0n, at);
  return at;
}

class ChunkWriter {
  readonly #pieces: Uint8Array[] = [];
  /** Where the piece in the making starts. */
  #start = 0;

  constructor(
    private readonly buffer: Buffer,
    private at: number,
  ) {}

  write(cases: readonly ChunkCase[], observed: boolean): Uint8Array[] {
    for (const { input, output, expected, observation } of cases) {
      this.#value(input);
      this.#value(output);
      if (expected === undefined) this.buffer[this.at++] = SEPARATOR;
      else this.#value(expected);
      if (!observed) continue;
      if (observation !== undefined) {
        this.buffer.set(observation, this.at);
        this.at += observation.length;
      }
      this.buffer[this.at++] = SEPARATOR;
    }
    this.#cut();
    return this.#pieces;
  }

  #value(bytes: Uint8Array): void {
    if (bytes.length < COPY_LIMIT_BYTES) {
      this.buffer.set(bytes, this.at);
      this.at += bytes.length;
    } else {
      this.#cut();
      this.#pieces.push(bytes);
    }
    this.buffer[this.at++] = SEPARATOR;
  }

  #cut(): void {
    if (this.at > this.#start) this.#pieces.push(this.buffer.subarray(this.#start, this.at));
    this.#start = this.at;
  }
}
