import type { CaseValues, ColumnNames } from "./columns.js";
import type { Row } from "./row.js";
import { type CaseSource, placeOf } from "./source.js";

/** What rows lack of the columns that options name. A column that no row has is another matter: its name is wrong. */
export class CaseGaps {
  readonly #withoutOutput = new Set<number>();
  readonly #expected = new Map<string, { readonly first: string; more: number }>();
  #firstWithoutOutput = "";

  /** @param canRun whether a case without an output gets one from the artifact. */
  constructor(
    private readonly source: Pick<CaseSource, "name">,
    private readonly names: ColumnNames,
    private readonly canRun: boolean,
  ) {}

  add(index: number, row: Row, values: CaseValues): void {
    if (values.prediction === undefined && this.names.prediction !== undefined && !this.canRun) {
      if (this.#withoutOutput.size === 0) this.#firstWithoutOutput = placeOf(row);
      this.#withoutOutput.add(index);
    }
    if (values.expected.length === this.names.expected.length) return;
    const there = new Set(values.expected.map(([name]) => name));
    for (const name of this.names.expected.filter((one) => !there.has(one))) {
      const gap = this.#expected.get(name);
      if (gap === undefined) this.#expected.set(name, { first: placeOf(row), more: 0 });
      else gap.more += 1;
    }
  }

  /** Why a case cannot be scored, in the words of the options; `undefined` where it has an output. */
  whyNoOutput(index: number): string | undefined {
    return this.#withoutOutput.has(index) ? this.#noPrediction() : undefined;
  }

  /** Of cases without a prediction, in one line; none where there are none. */
  predictionNotes(): readonly string[] {
    if (this.#withoutOutput.size === 0) return [];
    const where = this.#where(this.#firstWithoutOutput, this.#withoutOutput.size - 1);
    return [`${where}: ${this.#noPrediction()}; what has no output cannot be scored`];
  }

  /** Of each expected value that cases lack, in one line. */
  expectedNotes(): readonly string[] {
    return [...this.#expected].map(
      ([name, { first, more }]) =>
        `${this.#where(first, more)}: no ${JSON.stringify(name)} (--output-columns); the metric gets no such expected value`,
    );
  }

  #noPrediction(): string {
    return `no ${JSON.stringify(this.names.prediction)} (--prediction-column)`;
  }

  #where(first: string, more: number): string {
    const others = more === 0 ? "" : ` and ${String(more)} more ${more === 1 ? "case" : "cases"}`;
    return `${this.source.name}: ${first}${others}`;
  }
}
