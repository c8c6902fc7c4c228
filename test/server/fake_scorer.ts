import { Meter } from "../../src/model/meter.js";
import type { Case } from "../../src/scoring/case.js";
import { ObservationBook } from "../../src/scoring/observation_book.js";
import type { CaseError, CaseResult, Outcome } from "../../src/scoring/result.js";
import { type MetricDescription, type ScoreCall, type Scorer, ScorerError } from "../../src/scoring/scorer.js";
import { memoryLog } from "./memory_log.js";

/** A metric that loaded. */
export const METRIC: MetricDescription = {
  loaded: true,
  loadError: "",
  fingerprint: "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15",
  file: "metric.py",
  problems: [],
  warnings: [],
  arguments: 3,
  signature: "(input, output, expected=None)",
  isAsync: false,
  rewardSpecJson: "",
  rewardWeights: undefined,
  pythonVersion: "3.12.1",
  startMethod: "fork",
  startMethodReason: "",
  loadMs: 12,
  runFile: "",
};

export function scored(value: number, feedback = "Correct, as expected."): Outcome {
  return { kind: "score", value, feedback: Buffer.from(feedback), scores: [], sideInfo: new Uint8Array() };
}

/** A scorer without workers: one case after the other, each as `outcome` says. */
export class FakeScorer implements Scorer {
  readonly metricTimeoutMs = 60_000;
  readonly runTimeoutMs = 30_000;
  readonly metricMeter = new Meter();
  readonly gatewayMeter = new Meter();
  readonly observations = new ObservationBook(this.gatewayMeter, memoryLog());
  metric = METRIC;
  outcome: (item: Case, call: number) => Outcome | Promise<Outcome> = () => scored(1);
  metricMs = 0.5;
  /** What a run of the artifact comes to, for a case without output. */
  run: (item: Case) => Pick<CaseResult, "output" | "observation"> | CaseError = () => ({
    output: Buffer.from('"ran"'),
  });

  /** What happened to it. */
  readonly seen: Case[] = [];
  opened = 0;
  finalized = 0;
  aborted = 0;
  closedWith: number | undefined;

  #ready = true;
  #closed = false;
  readonly #listeners = new Set<(ready: boolean) => void>();
  readonly #changes = new Set<() => void>();

  modelUsage() {
    return { metric: this.metricMeter.usage(), gateway: this.gatewayMeter.usage() };
  }

  describe(): MetricDescription {
    return this.metric;
  }

  isReady(): boolean {
    return this.#ready;
  }

  setReady(ready: boolean): void {
    this.#ready = ready;
    for (const listener of this.#listeners) listener(ready);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  onReadyChange(listener: (ready: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  workerCount(): number {
    return 2;
  }

  open(signal: AbortSignal): ScoreCall {
    if (this.#closed) throw new ScorerError("shutting_down", "the scorer is closed");
    if (!this.metric.loaded) throw new ScorerError("metric_not_loaded", this.metric.loadError);
    this.opened += 1;
    const call = this.opened;
    return { metric: this.metric, score: (batches) => this.#score(batches, call, signal) };
  }

  reload(): Promise<MetricDescription> {
    return Promise.resolve(this.metric);
  }

  close(deadlineMs: number): Promise<void> {
    this.#closed = true;
    this.closedWith = deadlineMs;
    return Promise.resolve();
  }

  /** Resolves once `condition` holds; looked at after each thing that happens here. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#changes.add(resolve);
      });
    }
  }

  async *#score(
    batches: AsyncIterable<readonly Case[]>,
    call: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly CaseResult[], void, undefined> {
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        this.aborted += 1;
        reject(new ScorerError("cancelled", "the call was cancelled"));
        this.#changed();
      });
    });
    aborted.catch(() => undefined);
    try {
      for await (const batch of batches) {
        const results: CaseResult[] = [];
        for (const item of batch) {
          this.seen.push(item);
          this.#changed();
          results.push(await Promise.race([aborted, this.#resultOf(item, call)]));
        }
        yield results;
      }
    } finally {
      this.finalized += 1;
      this.#changed();
    }
  }

  async #resultOf(item: Case, call: number): Promise<CaseResult> {
    const rest = { id: item.id, index: item.index, queuedMs: 0.25, metricMs: this.metricMs };
    if (item.output !== undefined || item.artifact === undefined) {
      const observation = item.observed === undefined ? {} : { observation: item.observed };
      return { ...rest, ...observation, outcome: await this.#outcomeOf(item, call) };
    }
    const ran = this.run(item);
    if ("kind" in ran) return { ...rest, isRun: true, outcome: ran };
    return { ...rest, isRun: true, ...ran, outcome: await this.#outcomeOf(item, call) };
  }

  async #outcomeOf(item: Case, call: number): Promise<Outcome> {
    if (item.fault !== undefined) return { kind: "error", code: "INVALID_CASE", message: item.fault, traceback: "" };
    return await this.outcome(item, call);
  }

  #changed(): void {
    for (const resolve of this.#changes) resolve();
    this.#changes.clear();
  }
}
