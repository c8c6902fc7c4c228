import { availableParallelism } from "node:os";

import type { ModelClient } from "../model/client.js";
import { Meter, type MeteredUsage } from "../model/meter.js";
import type { Log } from "../worker/log.js";
import { openPool } from "../worker/pool.js";
import type { OpenPool } from "../worker/types.js";
import { Generation, type GenerationOptions, type RunOptions } from "./generation.js";
import { TotalFlight } from "./in_flight.js";
import { ModelCalls } from "./model_calls.js";
import { ObservationBook } from "./observation_book.js";
import type { Observations } from "./observations.js";
import { type MetricDescription, type ScoreCall, type Scorer, ScorerError } from "./scorer.js";

/** What a scorer needs to know of the metric, its workers and its runs. */
export interface ScorerOptions {
  /** The metric file. */
  readonly metric: string;
  /** The interpreter; `undefined`: the active virtual environment's, else `python3`. */
  readonly python: string | undefined;
  readonly startMethod: "auto" | "fork" | "spawn";
  /** Exactly so many workers; `undefined`: as many as the metric's waiting asks for. */
  readonly workers: number | undefined;
  /** At most so many, where their number is not fixed. */
  readonly maxWorkers: number;
  readonly metricTimeoutMs: number;
  readonly loadTimeoutMs: number;
  /** Seeds the metric's random generators before each case; `undefined`: every worker has a sequence of its own. */
  readonly seed: bigint | undefined;
  /** A result that needs more bytes is an error of its case. */
  readonly maxRowBytes: number;
  /** How artifacts are run; `undefined`: they are not. */
  readonly run: RunOptions | undefined;
  /** Aborted: the first load is given up; the scorer that comes of it is there to be closed. */
  readonly stopLoading?: AbortSignal;
}

/**
 * Loads the metric, and the run code, and starts to score. Resolves when they have loaded, or not: `describe()` tells. `client` is who metrics
 * ask models through.
 */
export async function openScorer(
  options: ScorerOptions,
  client: Pick<ModelClient, "complete" | "hasModel">,
  log: Log,
  open: OpenPool = openPool,
): Promise<Scorer> {
  const { python, startMethod, loadTimeoutMs, maxRowBytes } = options;
  const metricMeter = new Meter();
  const gatewayMeter = new Meter();
  const stopLoading = new AbortController();
  options.stopLoading?.addEventListener("abort", () => {
    stopLoading.abort();
  });
  const generation: GenerationOptions = {
    ...options,
    pool: { python, startMethod, loadTimeoutMs, maxRowBytes, stopLoading: stopLoading.signal },
    cores: availableParallelism(),
    models: new ModelCalls(client, metricMeter, log),
    isJudge: client.hasModel,
    observations: new ObservationBook(gatewayMeter, log),
    flight: new TotalFlight(),
    openPool: open,
    log,
    readyChanged: () => {
      scorer.readyChanged();
    },
  };
  const scorer = new MetricScorer(stopLoading, generation, metricMeter, gatewayMeter);
  await scorer.reload();
  return scorer;
}

class MetricScorer implements Scorer {
  #current: Generation | undefined;
  readonly #generations = new Set<Generation>();
  readonly #listeners = new Set<(ready: boolean) => void>();
  #wasReady = false;
  #isClosing = false;
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly stopLoading: AbortController,
    private readonly options: GenerationOptions,
    private readonly metricMeter: Meter,
    private readonly gatewayMeter: Meter,
  ) {}

  get metricTimeoutMs(): number {
    return this.options.metricTimeoutMs;
  }

  get runTimeoutMs(): number {
    return this.options.run?.timeoutMs ?? 0;
  }

  get observations(): Observations {
    return this.options.observations;
  }

  modelUsage(): { readonly metric: MeteredUsage; readonly gateway: MeteredUsage } {
    return { metric: this.metricMeter.usage(), gateway: this.gatewayMeter.usage() };
  }

  describe(): MetricDescription {
    return this.#loaded().metric;
  }

  isReady(): boolean {
    return !this.#isClosing && this.#current?.isReady === true;
  }

  onReadyChange(listener: (ready: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  workerCount(): number {
    return this.#current?.workerCount ?? 0;
  }

  open(signal: AbortSignal): ScoreCall {
    if (this.#isClosing) throw new ScorerError("shutting_down", "the sidecar is shutting down; use another one");
    const generation = this.#loaded();
    const { loaded, loadError } = generation.metric;
    if (!loaded) throw new ScorerError("metric_not_loaded", `the metric is not loaded: ${loadError}`);
    return generation.open(signal);
  }

  /** One load at a time; the current metric serves until the new one stands. */
  async reload(): Promise<MetricDescription> {
    const load = this.#reloading.then(() => this.#replace());
    this.#reloading = load.catch(() => undefined);
    await load;
    return this.describe();
  }

  async close(deadlineMs: number): Promise<void> {
    this.#isClosing = true;
    this.readyChanged();
    this.stopLoading.abort();
    await this.#reloading;
    const calls = [...this.#generations].flatMap((generation) => [...generation.calls]);
    for (const call of calls) call.close();
    await withDeadline(Promise.all(calls.map((call) => call.ended)), deadlineMs);
    await Promise.all([...this.#generations].map((generation) => generation.close()));
  }

  /** Tells the listeners where readiness changed. */
  readyChanged(): void {
    const ready = this.isReady();
    if (ready === this.#wasReady) return;
    this.#wasReady = ready;
    for (const listener of this.#listeners) listener(ready);
  }

  async #replace(): Promise<void> {
    if (this.#isClosing) return;
    const generation = await Generation.load(this.options);
    this.#generations.add(generation);
    const previous = this.#current;
    // What was given up describes nothing: a call that begins meanwhile is told of the metric that there is.
    if (this.stopLoading.signal.aborted && previous !== undefined) return;
    this.#current = generation;
    if (previous !== undefined) void previous.retire().then(() => this.#generations.delete(previous));
    this.readyChanged();
  }

  #loaded(): Generation {
    if (this.#current === undefined) throw new Error("a scorer is used before its metric was loaded");
    return this.#current;
  }
}

/** Resolves with `promise`, or after `deadlineMs` without it. */
async function withDeadline(promise: Promise<unknown>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => (timer = setTimeout(resolve, deadlineMs)));
  await Promise.race([promise, deadline]);
  clearTimeout(timer);
}
