import { describe, expect, it } from "vitest";

import type { Pending } from "../../src/scoring/call.js";
import { chunkCase, cutChunk } from "../../src/scoring/chunk_cases.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const pending = (size: number, rest: Partial<Pending> = {}): Pending => ({
  item: { id: "", index: 0, input: bytes("{}"), output: bytes("1"), expected: undefined, observationId: "" },
  bytes: size,
  arrivedAt: 0,
  lostStarts: 0,
  output: undefined,
  observed: undefined,
  isRun: false,
  ...rest,
});
const MEBIBYTE = 1024 * 1024;

describe("cutChunk", () => {
  it("takes the first cases, and leaves the others in their order", () => {
    const queue = [1, 2, 3, 4].map((size) => pending(size));
    expect(cutChunk(queue, 3).map((one) => one.bytes)).toEqual([1, 2, 3]);
    expect(queue.map((one) => one.bytes)).toEqual([4]);
  });

  it("takes no more than 4 MiB, but always a case", () => {
    const queue = [5, 2, 2, 1].map((size) => pending(size * MEBIBYTE));
    expect(cutChunk(queue, 10)).toHaveLength(1);
    expect(cutChunk(queue, 10)).toHaveLength(2);
    expect(cutChunk(queue, 10)).toHaveLength(1);
    expect(cutChunk(queue, 10)).toEqual([]);
  });
});

describe("chunkCase", () => {
  it("gives the metric what a run returned, in place of an output that the case does not have", () => {
    const { item } = pending(1);
    const run = pending(1, { item: { ...item, output: undefined }, output: bytes('"made"'), isRun: true });
    expect(chunkCase(run, undefined).output).toEqual(bytes('"made"'));
    expect(chunkCase(pending(1), undefined).output).toEqual(bytes("1"));
  });

  it("has a seed for each case where one was given", () => {
    expect(chunkCase(pending(1), 7n).seed).toBeTypeOf("bigint");
    expect(chunkCase(pending(1), undefined).seed).toBeUndefined();
  });
});
