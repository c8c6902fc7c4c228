/** One benchmark: a file beside this one that exports it as a function, listed in `main.ts`. */
export type Benchmark = (setting: Setting) => Promise<readonly Measurement[]>;

/** What every benchmark works with. */
export interface Setting {
  /** The repository's top folder. */
  readonly root: string;
  /** The interpreter of the project's virtual environment, for workers and peers alike. */
  readonly python: string;
  /** The folder that holds the bench's own bundled programs. */
  readonly programs: string;
  /** Says what is going on; one line, for people. */
  readonly log: (line: string) => void;
}

/** One figure that a benchmark found. */
export interface Measurement {
  readonly name: string;
  readonly unit: "cases/s" | "s" | "ms/call" | "calls" | "times" | "cores" | "µs/case" | "µs/message" | "ms";
  /** The median of `samples`. */
  readonly value: number;
  /** Every figure taken, in the order taken. */
  readonly samples: readonly number[];
  /** Absent where the figure is only for information. */
  readonly target?: Target;
}

/** What a figure must keep to. */
export type Target = { readonly atLeast: number } | { readonly atMost: number };

export function measurement(
  name: string,
  unit: Measurement["unit"],
  samples: readonly number[],
  target?: Target,
): Measurement {
  return { name, unit, value: median(samples), samples, ...(target && { target }) };
}

export function meetsTarget({ value, target }: Measurement): boolean {
  if (target === undefined) return true;
  return "atLeast" in target ? value >= target.atLeast : value <= target.atMost;
}

/** The middle value, or the mean of the two in the middle. Throws where there is none. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const high = sorted[Math.floor(sorted.length / 2)];
  const low = sorted[Math.ceil(sorted.length / 2) - 1];
  if (low === undefined || high === undefined) throw new Error("a median needs at least one sample");
  return (low + high) / 2;
}
