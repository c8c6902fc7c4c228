/** Mean and spread of numbers that come one at a time (Welford's method: no sum of squares that loses digits). */
export class RunningStatistics {
  #count = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    this.#count += 1;
    const before = value - this.#mean;
    this.#mean += before / this.#count;
    this.#squares += before * (value - this.#mean);
  }

  get count(): number {
    return this.#count;
  }

  /** `undefined` without a value. */
  get mean(): number | undefined {
    return this.#count === 0 ? undefined : this.#mean;
  }

  /** The sample standard deviation (n − 1); `undefined` with fewer than two values. */
  get standardDeviation(): number | undefined {
    return this.#count < 2 ? undefined : Math.sqrt(this.#squares / (this.#count - 1));
  }

  /** The 95 % confidence interval of the mean by Student's t; `undefined` with fewer than two values. */
  get confidence95(): readonly [low: number, high: number] | undefined {
    const deviation = this.standardDeviation;
    if (deviation === undefined) return undefined;
    const half = (studentT975(this.#count - 1) * deviation) / Math.sqrt(this.#count);
    return [this.#mean - half, this.#mean + half];
  }
}

/**
 * The 0.975 quantile of Student's t: half the width of a 95 % interval, in standard errors. Tabulated to 30 degrees of
 * freedom; beyond, the expansion of Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 26.7.5, which is
 * then right to six decimals.
 */
export function studentT975(degreesOfFreedom: number): number {
  const tabulated = T975[degreesOfFreedom - 1];
  if (tabulated !== undefined) return tabulated;
  const x = NORMAL975;
  const [x3, x5, x7] = [x ** 3, x ** 5, x ** 7];
  const terms = [
    (x3 + x) / 4,
    (5 * x5 + 16 * x3 + 3 * x) / 96,
    (3 * x7 + 19 * x5 + 17 * x3 - 15 * x) / 384,
    (79 * x ** 9 + 776 * x7 + 1482 * x5 - 1920 * x3 - 945 * x) / 92160,
  ];
  return terms.reduce((sum, term, power) => sum + term / degreesOfFreedom ** (power + 1), x);
}

/** Numbers kept whole, for exact percentiles; 8 bytes each. */
export class Percentiles {
  #values = new Float64Array(1024);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count] = value;
    this.#count += 1;
  }

  /** The values at these fractions by the nearest rank: each is a value that came. `undefined` without a value. */
  at(...fractions: readonly number[]): readonly (number | undefined)[] {
    const sorted = this.#values.subarray(0, this.#count).slice().sort();
    return fractions.map((fraction) => sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)]);
  }
}

const NORMAL975 = 1.959963984540054;

/* prettier-ignore */
const T975 = [
  12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
  2.200985, 2.178813, 2.160369, 2.144787, 2.13145, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
  2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.04523, 2.042272,
];
