import type { MeteredUsage } from "../model/meter.js";
import type { LoadedMetric } from "../worker/types.js";
import type { Case } from "./case.js";
import type { Observations } from "./observations.js";
import type { CaseResult } from "./result.js";

export type { MetricProblem, MetricStep } from "../worker/types.js";

/** What the sidecar knows of a metric that it tried to load. */
export interface MetricDescription extends LoadedMetric {
  readonly loaded: boolean;
  /** Why it is not loaded, or the run code is not, in one line; empty where all is well. */
  readonly loadError: string;
  /** The run code's file name, without its folder; empty where there is none. */
  readonly runFile: string;
}

/**
 * Scores cases with one loaded metric. A call takes the metric that is current when it begins and
 * keeps it until it ends, across reloads.
 */
export interface Scorer {
  /** The current metric, or why there is none. */
  describe(): MetricDescription;

  /** True where a metric is loaded and a worker stands ready. */
  isReady(): boolean;

  /** Calls back at each change of `isReady()`. Returns how to stop that. */
  onReadyChange(listener: (ready: boolean) => void): () => void;

  /** Workers alive now. */
  workerCount(): number;

  /** The longest that a metric may take for one case, in milliseconds. */
  readonly metricTimeoutMs: number;

  /** The longest that a run may take, in milliseconds. */
  readonly runTimeoutMs: number;

  /** Runs that an engine does itself, and the tokens of all runs. */
  readonly observations: Observations;

  /** What model calls have used since the start: those of metrics, and those through the gateway. */
  modelUsage(): { readonly metric: MeteredUsage; readonly gateway: MeteredUsage };

  /**
   * Begins a call. Throws `ScorerError` `metric_not_loaded` or `shutting_down`.
   * `signal` aborted: the call's queued cases are dropped and its running ones ended.
   */
  open(signal: AbortSignal): ScoreCall;

  /** Loads the metric again beside the current one, then takes its place. Resolves with what is current then. */
  reload(): Promise<MetricDescription>;

  /**
   * Stops: new calls fail, open calls take no further cases and may finish those they have until `deadlineMs` from now;
   * then everything is ended. Resolves when no process is left.
   */
  close(deadlineMs: number): Promise<void>;
}

/** One call's cases and results. */
export interface ScoreCall {
  readonly metric: MetricDescription;

  /**
   * Scores batches of cases. Every case gets exactly one result, in the order in which cases end; each array holds what was
   * ready. Batches are pulled only while the call's cases in flight (pulled, and their result not yet
   * taken by the consumer's next step) stay under the limits, so that a slow consumer slows the producer down.
   * With `keepsResults` the consumer needs them all at once: they count as in flight until the call ends.
   * Throws `ScorerError` `shutting_down` where the scorer closed before `batches` ended, once the results of all cases already taken were given.
   */
  score(batches: AsyncIterable<readonly Case[]>, keepsResults?: boolean): AsyncIterable<readonly CaseResult[]>;
}

export type ScorerErrorCode = "metric_not_loaded" | "shutting_down" | "cancelled";

/** Why a whole call failed; a single case's fault is its result instead. */
export class ScorerError extends Error {
  override readonly name = "ScorerError";

  constructor(
    readonly code: ScorerErrorCode,
    message: string,
  ) {
    super(message);
  }
}
