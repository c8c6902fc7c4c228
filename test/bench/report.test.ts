import { expect, test } from "vitest";
import { measurement, median, meetsTarget } from "../../bench/benchmark.js";
import { formatReport, missedTargets, type Report } from "../../bench/report.js";

const report: Report = {
  endedAt: "2025-01-01T00:00:00.000Z",
  machine: { cpu: "A processor", cores: 2, system: "Linux 6", node: "20.4.0", python: "3.9.1" },
  benchmarks: {
    throughput: [
      measurement("sidecar", "cases/s", [190_000, 210_000, 200_000]),
      measurement("ratio", "times", [2.4, 2.6, 2.5], { atLeast: 2.5 }),
    ],
    start: [measurement("first score", "ms", [1001], { atMost: 1000 })],
  },
};

test("a median is the middle sample, or lies between the two in the middle", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(() => median([])).toThrow("at least one sample");
});

test("a target is kept at its very figure", () => {
  expect(meetsTarget(measurement("a", "ms", [2], { atMost: 2 }))).toBe(true);
  expect(meetsTarget(measurement("a", "ms", [2.01], { atMost: 2 }))).toBe(false);
  expect(meetsTarget(measurement("a", "times", [2], { atLeast: 2 }))).toBe(true);
  expect(meetsTarget(measurement("a", "times", [1.99], { atLeast: 2 }))).toBe(false);
  expect(meetsTarget(measurement("a", "ms", [1e9]))).toBe(true);
});

test("names every target that is missed", () => {
  expect(missedTargets(report)).toEqual(["start: first score"]);
});

test("prints the median, the range, the target and the verdict of each figure", () => {
  const lines = formatReport(report)
    .split("\n")
    .map((line) => line.replaceAll(/\s*│\s*/g, "|"));
  expect(lines[0]).toBe("A processor, 2 cores, Linux 6, Node 20.4.0, Python 3.9.1");
  expect(lines).toContain("|sidecar|200,000|190,000|210,000|cases/s|||");
  expect(lines).toContain("|ratio|2.50|2.40|2.60|times|≥ 2.50|kept|");
  expect(lines).toContain("|first score|1,001|1,001|1,001|ms|≤ 1,000|MISSED|");
});
