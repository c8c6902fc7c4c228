/** What some cases used of a worker, in milliseconds. */
export interface Usage {
  /** Wall time. */
  readonly wallMs: number;
  /** CPU time, and time spent waiting for a core: what the worker could not have shared. */
  readonly busyMs: number;
}

/** What a chunk weighs of what it did when the next one ended: long enough for a host that withholds the cores for a moment to count for little. */
const MEMORY = 0.95;
/** Below this much observed time a ratio says nothing. */
const ENOUGH_MS = 5;

/**
 * How many workers serve a metric best: as many cases in hand as cores × wall time / busy time, from one a core up to the
 * maximum. A metric that computes gets one a core; one that waits (for a model, a database) gets more.
 */
export class WorkerCount {
  #wallMs = 0;
  #busyMs = 0;
  #running: Usage = { wallMs: 0, busyMs: 0 };
  #hasAsked = false;

  constructor(
    /** Cores that this process may use. */
    readonly cores: number,
    /** At most so many workers. */
    readonly most: number,
    /** Exactly so many, where the user said so. */
    readonly fixed: number | undefined,
    /** Whether the metric is known to ask models, and so to wait. */
    private isJudge = false,
  ) {}

  /** How many to begin with. */
  get first(): number {
    return this.fixed ?? Math.min(this.cores, this.most);
  }

  /** How many to have ready then, before any case has come: forking takes longer than a first model call. */
  get ready(): number {
    return this.isJudge && this.fixed === undefined ? this.most : this.first;
  }

  /** Remembers what finished cases used. */
  learn(usage: Usage): void {
    this.#wallMs = this.#wallMs * MEMORY + usage.wallMs;
    this.#busyMs = this.#busyMs * MEMORY + usage.busyMs;
  }

  /** What the cases that are in hand at this moment have used so far: nobody waits for a slow first result to see that it waits. */
  suppose(running: Usage): void {
    this.#running = running;
  }

  /** Whether to look at what running cases use: not where their number is given, nor where a metric tells by its calls that it waits. */
  get isWatching(): boolean {
    return this.fixed === undefined && !this.#hasAsked;
  }

  /** The metric asks a model, and so waits: as long as nothing else is known of it, all may. */
  asks(): void {
    if (this.#hasAsked) return;
    this.#hasAsked = true;
    this.isJudge = true;
    this.#running = { wallMs: 0, busyMs: 0 };
  }

  /** How many workers should have a case in hand now, where `asking` of them wait for a model: those leave their cores to others. */
  target(asking = 0): number {
    if (this.fixed !== undefined) return this.fixed;
    const learned = this.#learned();
    return asking === 0 ? learned : Math.max(learned, Math.min(this.most, asking + this.cores));
  }

  #learned(): number {
    if (this.isJudge && this.#wallMs < ENOUGH_MS) return this.most;
    const wallMs = this.#wallMs + this.#running.wallMs;
    if (wallMs < ENOUGH_MS) return this.first;
    const busyMs = Math.max(this.#busyMs + this.#running.busyMs, wallMs / this.most);
    // Not rounded up: a worker too many for a metric that computes is measured in every case's time.
    return Math.max(this.first, Math.min(this.most, Math.floor((this.cores * wallMs) / busyMs)));
  }
}
