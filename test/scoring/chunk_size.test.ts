import { expect, it } from "vitest";

import { ChunkSize } from "../../src/scoring/chunk_size.js";

it("is one case until something is known", () => {
  expect(new ChunkSize().next(10_000, 2)).toBe(1);
});

it("is what fits into about 5 ms", () => {
  const size = new ChunkSize();
  size.learn(10, 10);
  expect(size.next(10_000, 2)).toBe(5);
});

it("is at most 1,024, however fast the metric", () => {
  const size = new ChunkSize();
  size.learn(10, 0);
  expect(size.next(10_000, 2)).toBe(1024);
});

it("is one for a slow metric", () => {
  const size = new ChunkSize();
  size.learn(1, 200);
  expect(size.next(10_000, 2)).toBe(1);
});

it("leaves every worker its share", () => {
  const size = new ChunkSize();
  size.learn(100, 0.1);
  expect(size.next(10, 4)).toBe(3);
});

it("follows a metric that turns slow", () => {
  const size = new ChunkSize();
  size.learn(1000, 1);
  for (let chunk = 0; chunk < 20; chunk++) size.learn(5, 1000);
  expect(size.next(10_000, 2)).toBe(1);
});
