import { expect, it } from "vitest";

import { cpuBetween } from "../../bench/command_run.js";

const SAMPLES = [
  { at: 0, cpuMs: 5 },
  { at: 25, cpuMs: 10 },
  { at: 50, cpuMs: 30 },
  { at: 75, cpuMs: 31 },
];

it("takes CPU time from the last sample before to the first after", () => {
  expect(cpuBetween(SAMPLES, 30, 60)).toBe(21);
  expect(cpuBetween(SAMPLES, 25, 50)).toBe(20);
});

it("takes what there is where the process was not seen before or after", () => {
  expect(cpuBetween(SAMPLES, -10, 100)).toBe(26);
  expect(() => cpuBetween([], 0, 1)).toThrow("never seen");
});
