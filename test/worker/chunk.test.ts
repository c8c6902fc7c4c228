import { describe, expect, test } from "vitest";
import { COPY_LIMIT_BYTES, encodeChunk } from "../../src/worker/chunk.js";
import type { ChunkCase } from "../../src/worker/types.js";
import { vectors } from "./vectors.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test.each(vectors("chunk"))("$name", ({ chunk, cases, hex }) => {
  const encoded = encodeChunk(
    chunk,
    cases.map(({ input, output, expected, seed, observation = null }) => ({
      input: bytes(input),
      output: bytes(output),
      expected: expected === null ? undefined : bytes(expected),
      seed: seed === null ? undefined : BigInt(seed),
      observation: observation === null ? undefined : bytes(observation),
    })),
  );
  expect(encoded).toHaveLength(1);
  expect(Buffer.concat(encoded).toString("hex")).toBe(hex);
});

describe("large payloads", () => {
  const large = new Uint8Array(COPY_LIMIT_BYTES).fill(0x20);
  const small = bytes("{}");
  const item = (input: Uint8Array, output: Uint8Array, expected?: Uint8Array): ChunkCase => ({
    input,
    output,
    expected,
    seed: undefined,
    observation: undefined,
  });

  test("are written from where they are, between what is copied", () => {
    const pieces = encodeChunk(1, [item(small, large), item(large, large, large)]);
    expect(pieces.filter((piece) => piece === large)).toHaveLength(4);
    expect(pieces.map((piece) => piece.length)).toEqual([
      14 + 3,
      large.length,
      2,
      large.length,
      1,
      large.length,
      1,
      large.length,
      1,
    ]);
  });

  test("come to the same bytes as small ones", () => {
    const cases = [item(small, large, small), item(large, small), item(small, small, large)];
    const frame = Buffer.concat(encodeChunk(7, cases));
    expect(frame.readUInt32LE(0)).toBe(frame.length - 4);
    const text = frame.subarray(14).toString();
    const blank = " ".repeat(COPY_LIMIT_BYTES);
    expect(text).toBe(`{}\x1e${blank}\x1e{}\x1e${blank}\x1e{}\x1e\x1e{}\x1e{}\x1e${blank}\x1e`);
  });
});
