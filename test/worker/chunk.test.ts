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

describe("values that lie together already", () => {
  const text = bytes('{"n":1}\x1e1\x1e\x1e{"n":2}\x1e2\x1e{}\x1e{"n":3}\x1e3\x1e\x1e');
  const range = (from: number, to: number, observation?: Uint8Array): ChunkCase => {
    const [input = "", output = "", expected = ""] = Buffer.from(text.subarray(from, to)).toString().split("\x1e");
    return {
      input: bytes(input),
      output: bytes(output),
      expected: expected === "" ? undefined : bytes(expected),
      seed: undefined,
      observation,
      values: { bytes: text, from, to },
    };
  };
  const alone = (item: ChunkCase): ChunkCase => {
    const copy = { ...item };
    delete copy.values;
    return copy;
  };
  const cases = [range(0, 11), range(11, 24), range(24, text.length)];

  test.each([
    ["one after the other", cases],
    ["with a gap", [cases[0], cases[2]]],
    ["in another order", [cases[1], cases[0], cases[2]]],
    ["between others", [cases[0], alone(cases[1] ?? expect.fail()), cases[2]]],
    ["with observations", [cases[0], range(11, 24, bytes('{"run_ms":1}')), cases[2]]],
  ])("come to the same bytes, %s", (_, some) => {
    const given = some.map((item) => item ?? expect.fail());
    expect(Buffer.concat(encodeChunk(5, given))).toEqual(Buffer.concat(encodeChunk(5, given.map(alone))));
  });

  test("are written from where they are, in one piece, where they are large", () => {
    const large = new Uint8Array(2 * COPY_LIMIT_BYTES).fill(0x20);
    const half = (from: number, to: number) => ({ ...range(0, 11), values: { bytes: large, from, to } });
    const [head, piece, ...more] = encodeChunk(1, [half(0, COPY_LIMIT_BYTES), half(COPY_LIMIT_BYTES, large.length)]);
    expect(more).toEqual([]);
    expect(head).toHaveLength(14);
    expect(piece?.buffer).toBe(large.buffer);
    expect(piece).toHaveLength(large.length);
  });
});
