import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { Percentiles, RunningStatistics, studentT975 } from "../../../src/cli/score/statistics.js";

function statisticsOf(values: readonly number[]): RunningStatistics {
  const statistics = new RunningStatistics();
  for (const value of values) statistics.add(value);
  return statistics;
}

describe("mean and spread", () => {
  it("agree with the textbook's two passes", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 2, maxLength: 50 }),
        (values) => {
          const statistics = statisticsOf(values);
          const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
          const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
          expect(statistics.mean).toBeCloseTo(mean, 6);
          expect(statistics.standardDeviation).toBeCloseTo(Math.sqrt(squares / (values.length - 1)), 4);
        },
      ),
    );
  });

  it("keep their digits where all values are large and close", () => {
    expect(statisticsOf([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]).standardDeviation).toBeCloseTo(Math.sqrt(30), 9);
  });

  it("are not known without a value, nor the spread with one", () => {
    const none = statisticsOf([]);
    expect([none.mean, none.standardDeviation, none.confidence95]).toEqual([undefined, undefined, undefined]);
    const one = statisticsOf([0.5]);
    expect([one.mean, one.standardDeviation, one.confidence95]).toEqual([0.5, undefined, undefined]);
  });

  it("give Student's interval: 3.0 ± 2.776445 × 1.581139 / √5 for 1 to 5", () => {
    const [low, high] = statisticsOf([1, 2, 3, 4, 5]).confidence95 ?? [];
    expect(low).toBeCloseTo(1.036757, 5);
    expect(high).toBeCloseTo(4.963243, 5);
  });
});

describe("the 0.975 quantile of Student's t", () => {
  it.each([...Array.from({ length: 40 }, (_, place) => place + 1), 60, 100, 1000])(
    "leaves 0.975 of the density below it, for %i degrees of freedom",
    (degrees) => {
      expect(0.5 + areaUnderDensity(studentT975(degrees), degrees)).toBeCloseTo(0.975, 6);
    },
  );

  it("ends at that of the normal distribution", () => {
    expect(studentT975(1e9)).toBeCloseTo(1.959964, 6);
  });
});

describe("percentiles", () => {
  it("are values that came, by the nearest rank", () => {
    const percentiles = new Percentiles();
    for (let value = 5000; value >= 1; value -= 1) percentiles.add(value);
    expect(percentiles.at(0.5, 0.99, 1)).toEqual([2500, 4950, 5000]);
  });

  it("are the only value there is, or none", () => {
    const percentiles = new Percentiles();
    expect(percentiles.at(0.5)).toEqual([undefined]);
    percentiles.add(7);
    expect(percentiles.at(0.01, 0.5, 0.99)).toEqual([7, 7, 7]);
  });
});

/** From 0 to `t`, by Simpson's rule over the angle θ with t = √ν tan θ, where the density is a power of the cosine. */
function areaUnderDensity(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees));
  const steps = 2000;
  const power = (theta: number): number => Math.cos(theta) ** (degrees - 1);
  const simpson = (end: number): number => {
    let sum = power(0) + power(end);
    for (let step = 1; step < steps; step += 1) sum += power((end * step) / steps) * (step % 2 === 0 ? 2 : 4);
    return (sum * end) / (3 * steps);
  };
  return (0.5 * simpson(angle)) / simpson(Math.PI / 2);
}
