import { expect, it } from "vitest";

import type { Case } from "../../src/scoring/case.js";
import { caseSeed } from "../../src/scoring/seed.js";

const item = (id: string, index: number): Case => ({
  id,
  index,
  input: undefined,
  output: undefined,
  expected: undefined,
  observationId: "",
});

it("depends on the id where there is one, wherever the case stands", () => {
  expect(caseSeed(1n, item("a", 0))).toBe(caseSeed(1n, item("a", 7)));
  expect(caseSeed(1n, item("a", 0))).not.toBe(caseSeed(1n, item("b", 0)));
});

it("depends on the index otherwise", () => {
  expect(caseSeed(1n, item("", 0))).toBe(caseSeed(1n, item("", 0)));
  expect(caseSeed(1n, item("", 0))).not.toBe(caseSeed(1n, item("", 1)));
  expect(caseSeed(1n, item("", 1))).not.toBe(caseSeed(1n, item("1", 1)));
});

it("depends on the run's seed and fits 64 bits", () => {
  expect(caseSeed(1n, item("a", 0))).not.toBe(caseSeed(2n, item("a", 0)));
  expect(caseSeed(-5n, item("a", 0))).toBeLessThan(1n << 64n);
});
