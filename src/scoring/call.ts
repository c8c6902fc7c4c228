import type { MeteredUsage } from "../model/meter.js";
import { type Case, caseBytes, type JsonBytes } from "./case.js";
import { CallFlight, type TotalFlight } from "./in_flight.js";
import { ObservationError } from "./observations.js";
import { caseFault, invalidCase, outcomeBytes } from "./outcome.js";
import type { CaseError, CaseResult, Observed, Outcome } from "./result.js";
import { type MetricDescription, type ScoreCall, ScorerError } from "./scorer.js";

/** A case that waits for its result. */
export interface Pending {
  readonly item: Case;
  /** What it costs in memory. */
  bytes: number;
  /** When it was read, on `performance.now()`. */
  readonly arrivedAt: number;
  /** How many workers died with it next in line, but not in hand. */
  lostStarts: number;
  /** What the run returned; `undefined`: it has not yet, or the case has an output of its own. */
  output: JsonBytes | undefined;
  /** What was measured of the run that made the output. */
  observed: Observed | undefined;
  /** Whether the sidecar makes the output by running the artifact. */
  readonly isRun: boolean;
}

/** The scheduler, as a call sees it. */
export interface CallHost {
  /** Cases were queued, for the metric or to be run. */
  queued(call: Call): void;
  /** What was measured of the run that belongs to a case. Throws `ObservationError`. */
  observed(item: Case): Observed | undefined;
  /** Whether there is run code. */
  readonly hasRuns: boolean;
  /** The call is over: drop what it has queued, end what it has running. */
  over(call: Call): void;
}

/** One call: its queue, its results, and how much of both may stand. */
export class Call implements ScoreCall {
  /** Cases with an output that no worker has; first in, first out. */
  readonly queue: Pending[] = [];
  /** Cases that wait to be run. */
  readonly runQueue: Pending[] = [];
  readonly #flight: CallFlight;
  #ready: CaseResult[] = [];
  #readyBytes = 0;
  #state: "open" | "closing" | "over" = "open";
  #sourceEnded = false;
  #sourceError: { readonly reason: unknown } | undefined;
  #wake: () => void = () => undefined;
  #isFlushing = false;
  #tellEnd: () => void = () => undefined;
  /** Resolves when the call is over. */
  readonly ended = new Promise<void>((resolve) => (this.#tellEnd = resolve));
  #stopReading: () => void = () => undefined;

  constructor(
    readonly metric: MetricDescription,
    private readonly host: CallHost,
    total: TotalFlight,
    private readonly signal: AbortSignal,
  ) {
    this.#flight = new CallFlight(total);
    signal.addEventListener("abort", this.#abort, { once: true });
    if (signal.aborted) this.#abort();
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Results that the consumer leaves standing hold the next chunks back. */
  get mayRun(): boolean {
    return this.#flight.mayRun(this.#readyBytes);
  }

  async *score(
    batches: AsyncIterable<readonly Case[]>,
    keepsResults = false,
  ): AsyncGenerator<readonly CaseResult[], void, undefined> {
    if (keepsResults) this.#flight.keepResults();
    const reading = this.#read(batches);
    try {
      while (!this.isOver) {
        if (this.#ready.length > 0) {
          yield* this.#take();
        } else if (this.#sourceError !== undefined) {
          throw this.#sourceError.reason;
        } else if (this.#flight.cases === 0 && this.#sourceEnded) {
          return;
        } else if (this.#flight.cases === 0 && this.#state === "closing") {
          throw new ScorerError(
            "shutting_down",
            "the sidecar is shutting down; send the remaining cases to another one",
          );
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
      throw this.signal.aborted
        ? new ScorerError("cancelled", "the call was cancelled")
        : new ScorerError("shutting_down", "the sidecar shut down before every case was scored");
    } finally {
      this.#end();
      await reading;
    }
  }

  /** A case's one result. `metricUsage`: what its metric's model calls used. */
  settle(pending: Pending, outcome: Outcome, queuedMs: number, metricMs: number, metricUsage?: MeteredUsage): void {
    if (this.isOver) return;
    const { item, isRun, output, observed } = pending;
    const result = { id: item.id, index: item.index, outcome, queuedMs: Math.max(0, queuedMs), metricMs };
    const isPlain = observed === undefined && metricUsage === undefined && !isRun;
    this.#ready.push(isPlain ? result : { ...result, ...measuredParts(pending, metricUsage) });
    const bytes = outcomeBytes(outcome) + (isRun ? (output?.length ?? 0) : 0);
    this.#readyBytes += bytes;
    this.#flight.add(0, bytes - pending.bytes);
  }

  /** A run has made the case's output: the metric is next. */
  ran(pending: Pending, output: JsonBytes): void {
    if (this.isOver) return;
    pending.output = output;
    pending.bytes += output.length;
    this.#flight.add(0, output.length);
    this.queue.push(pending);
    this.host.queued(this);
  }

  /** Lets the consumer see what was settled, together with what other workers have sent by now: a response costs more than a result. */
  flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#wake();
    });
  }

  /** Takes no further cases; ends when those it has are done. */
  close(): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#stopReading();
    this.#wake();
  }

  /** Ends at once, whatever is left. */
  abandon(): void {
    this.#end();
  }

  readonly #abort = (): void => {
    this.#end();
  };

  #end(): void {
    if (this.isOver) return;
    this.#state = "over";
    this.signal.removeEventListener("abort", this.#abort);
    this.#stopReading();
    // First, so that others can have what this frees.
    this.#flight.close();
    this.host.over(this);
    this.#wake();
    this.#tellEnd();
  }

  *#take(): Generator<readonly CaseResult[], void, undefined> {
    const results = this.#ready;
    const bytes = this.#readyBytes;
    this.#ready = [];
    yield results;
    // Only here has the consumer come back for more: until then the results count as in flight.
    this.#readyBytes -= bytes;
    if (this.isOver) return;
    this.#flight.add(-results.length, this.#flight.keepsResults ? 0 : -bytes);
    this.host.queued(this);
  }

  /** Pulls batches while there is room. Never rejects: what goes wrong is told by `score`. */
  async #read(batches: AsyncIterable<readonly Case[]>): Promise<void> {
    const source = batches[Symbol.asyncIterator]();
    try {
      while (this.#state === "open") {
        const step = await this.#next(source);
        if (step === undefined) break;
        if (step.done === true) {
          this.#sourceEnded = true;
          break;
        }
        this.#enqueue(step.value);
        await this.#flight.room();
      }
    } catch (reason) {
      this.#sourceError = { reason };
    }
    if (!this.#sourceEnded) this.#letGo(source);
    this.#wake();
  }

  /** The source's next step, or `undefined` once the call takes no more. */
  #next(source: AsyncIterator<readonly Case[]>): Promise<IteratorResult<readonly Case[]> | undefined> {
    return new Promise((resolve, reject) => {
      this.#stopReading = () => {
        resolve(undefined);
      };
      source.next().then(resolve, reject);
    });
  }

  /** A source that is in the middle of a step finishes whenever it does: nobody waits for it. */
  #letGo(source: AsyncIterator<readonly Case[]>): void {
    source.return?.().catch(() => undefined);
  }

  #enqueue(batch: readonly Case[]): void {
    const arrivedAt = performance.now();
    let bytes = 0;
    let settled = false;
    for (const item of batch) {
      const isRun = item.values === undefined && item.output === undefined;
      const { observed } = item;
      const pending: Pending = {
        item,
        bytes: caseBytes(item),
        arrivedAt,
        lostStarts: 0,
        output: undefined,
        observed,
        isRun,
      };
      bytes += pending.bytes;
      const fault = caseFault(item, this.host.hasRuns) ?? this.#observe(pending);
      if (fault === undefined) {
        (isRun ? this.runQueue : this.queue).push(pending);
      } else {
        this.settle(pending, fault, 0, 0);
        settled = true;
      }
    }
    this.#flight.add(batch.length, bytes);
    if (settled) this.flush();
    this.host.queued(this);
  }

  #observe(pending: Pending): CaseError | undefined {
    if (pending.item.observationId === "") return undefined;
    try {
      pending.observed = this.host.observed(pending.item);
      return undefined;
    } catch (reason) {
      if (reason instanceof ObservationError) return invalidCase(reason.message);
      throw reason;
    }
  }
}

/** The parts of a result that only observations, model calls and runs bring. */
function measuredParts(
  { observed, isRun, output }: Pending,
  metricUsage: MeteredUsage | undefined,
): Partial<Pick<CaseResult, "observation" | "metricUsage" | "isRun" | "output">> {
  return {
    ...(observed === undefined ? {} : { observation: observed }),
    ...(metricUsage === undefined ? {} : { metricUsage }),
    ...(isRun ? { isRun } : {}),
    ...(output === undefined ? {} : { output }),
  };
}
