import { CaseErrorCode, type CaseResult, type Observation } from "../../gen/skynet/scoring/v1/case_pb.js";
import { Spending } from "./spending.js";
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
  /** Cases whose run was observed, and its time all the same not measured. */
  runsOfUnknownTime = 0;
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
    if (observation !== undefined) this.#addRun(observation);
    if (metricUsage !== undefined) this.metricCost.add(metricUsage, metricUsage.costUsd);
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

  #addRun({ runMs, costUsd, costNotMeasuredReason, usage }: Observation): void {
    if (runMs === undefined) this.runsOfUnknownTime += 1;
    else this.runMs.add(runMs);
    this.runCost.add(usage, costUsd, costNotMeasuredReason);
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
