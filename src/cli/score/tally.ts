import { CaseErrorCode, type CaseResult } from "../../gen/skynet/scoring/v1/case_pb.js";
import { Percentiles, RunningStatistics } from "./statistics.js";

/** A case with a low score, for the summary. */
export interface LowCase {
  readonly index: number;
  readonly id: string;
  readonly value: number;
  readonly feedback: string;
}

/** The cases that ended with one error code. */
export interface ErrorKind {
  count: number;
  /** The first of them. */
  readonly first: { readonly index: number; readonly id: string; readonly message: string };
}

/** Adds up what cases cost. */
export class Spending {
  /** Cases that cost something, or may have. */
  cases = 0;
  /** US dollars of those whose cost was measured. */
  usd = 0;
  /** Those whose cost was not measured. */
  notMeasured = 0;

  add(usd: number | undefined): void {
    this.cases += 1;
    if (usd === undefined) this.notMeasured += 1;
    else this.usd += usd;
  }
}

/** Adds results up as they come; its size does not grow with them but for 8 bytes each. */
export class Tally {
  /** Results that came, scores and errors. */
  results = 0;
  errorCount = 0;
  readonly score = new RunningStatistics();
  /** Each named score, in the order in which the names came up. */
  readonly named = new Map<string, RunningStatistics>();
  readonly errors = new Map<string, ErrorKind>();
  readonly metricMs = new Percentiles();
  /** Of runs that the sidecar made or that were observed. */
  readonly runMs = new Percentiles();
  readonly runCost = new Spending();
  /** Of the metric's own model calls. */
  readonly metricCost = new Spending();
  /** The lowest first; equal scores in the order of the cases. */
  readonly lowest: LowCase[] = [];

  add(result: CaseResult): void {
    this.results += 1;
    const { outcome, index, id } = result;
    const metricMs = result.timing?.metricMs ?? 0;
    // 0: the metric was never called on it.
    if (metricMs > 0) this.metricMs.add(metricMs);
    const { observation, metricUsage } = result;
    if (observation?.runMs !== undefined) this.runMs.add(observation.runMs);
    if (observation !== undefined) this.runCost.add(observation.costUsd);
    if (metricUsage !== undefined) this.metricCost.add(metricUsage.costUsd);
    if (outcome.case === "score") {
      const { value, feedback, scores } = outcome.value;
      this.score.add(value);
      for (const [name, part] of Object.entries(scores)) {
        let statistics = this.named.get(name);
        if (statistics === undefined) this.named.set(name, (statistics = new RunningStatistics()));
        statistics.add(part);
      }
      this.#addLow({ index, id, value, feedback });
      return;
    }
    this.errorCount += 1;
    const code = CaseErrorCode[outcome.value?.code ?? CaseErrorCode.UNSPECIFIED];
    const kind = this.errors.get(code);
    if (kind !== undefined) kind.count += 1;
    else this.errors.set(code, { count: 1, first: { index, id, message: outcome.value?.message ?? "" } });
  }

  #addLow(low: LowCase): void {
    const last = this.lowest.at(-1);
    if (this.lowest.length >= LOWEST && last !== undefined && !isLower(low, last)) return;
    const place = this.lowest.findIndex((other) => isLower(low, other));
    this.lowest.splice(place < 0 ? this.lowest.length : place, 0, low);
    if (this.lowest.length > LOWEST) this.lowest.pop();
  }
}

function isLower(one: LowCase, other: LowCase): boolean {
  return one.value < other.value || (one.value === other.value && one.index < other.index);
}

const LOWEST = 5;
