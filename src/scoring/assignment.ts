import { setMaxListeners } from "node:events";
import type { Meter, MeteredUsage } from "../model/meter.js";
import type { ChunkUsage, RunningUsage } from "../worker/types.js";
import type { Call, Pending } from "./call.js";
import { CallMeter } from "./call_meter.js";
import type { Usage } from "./worker_count.js";

/** A chunk that a worker has: whose it is, what of it is left, and what it has used so far. */
export class Assignment {
  /** When the worker was last heard of, on `performance.now()`. */
  heardAt: number;
  /** When its call ended; `undefined` as long as somebody waits for it. */
  abandonedAt: number | undefined;
  /** What the same worker has waiting behind it. */
  next: Assignment | undefined;
  /** Whether its worker was asked to finish it early. */
  isRecalled = false;
  /** Time in the metric of the cases that came back, in milliseconds. */
  metricMs = 0;
  /** The same of those whose results were handed on. */
  settledMs = 0;
  readonly #settled: boolean[];
  #left: number;
  #seen: ChunkUsage = { metricMs: 0, cpuMs: 0, coreWaitMs: 0 };
  #seenCases = 0;
  /** By position; made when the first model call comes. */
  #meters: Map<number, CallMeter> | undefined;
  #modelCalls: AbortController | undefined;
  #pendingModelCalls = 0;

  constructor(
    readonly call: Call,
    readonly cases: readonly Pending[],
    /** The worker's number for the chunk. */
    readonly chunk: number,
    /** When the worker got it, or could begin with it, on `performance.now()`. */
    public startedAt: number,
  ) {
    this.heardAt = startedAt;
    this.#left = cases.length;
    this.#settled = new Array<boolean>(cases.length).fill(false);
  }

  /** It waited behind another chunk, which is over. */
  begin(now: number): void {
    this.startedAt = now;
    this.heardAt = now;
  }

  /** A model call begins: it is over when `signal` is aborted, as nobody waits for it any more; `ended` is to be called once. */
  beginModelCall(): { readonly signal: AbortSignal; readonly ended: () => void } {
    this.#pendingModelCalls += 1;
    this.#modelCalls ??= abortOfMany();
    const ended = (): void => {
      this.#pendingModelCalls -= 1;
    };
    return { signal: this.#modelCalls.signal, ended };
  }

  /** Whether the metric waits for a model at this moment. */
  get isAsking(): boolean {
    return this.#pendingModelCalls > 0;
  }

  abortModelCalls(): void {
    // Of those that ended there is nothing to abort, and it has its cost for each case.
    if (this.#pendingModelCalls > 0) this.#modelCalls?.abort();
  }

  /** Counts the model calls of the case at a position, and in `total`. */
  meter(position: number, total: Meter): CallMeter {
    this.#meters ??= new Map();
    let meter = this.#meters.get(position);
    if (meter === undefined) this.#meters.set(position, (meter = new CallMeter(total, "metric")));
    return meter;
  }

  /** What the model calls of a case used; `undefined` where it made none. */
  modelUsage(position: number | undefined): MeteredUsage | undefined {
    return position === undefined ? undefined : this.#meters?.get(position)?.usage();
  }

  /** Cases without a result. */
  get left(): number {
    return this.#left;
  }

  /** Position of the first case without a result. */
  get firstLeft(): number | undefined {
    const at = this.#settled.indexOf(false);
    return at < 0 ? undefined : at;
  }

  /** The case at a position, the first time; `undefined` once it has its result. */
  take(position: number | undefined): Pending | undefined {
    if (position === undefined || this.#settled[position] !== false) return undefined;
    this.#settled[position] = true;
    this.#left -= 1;
    return this.cases[position];
  }

  /** The cases without a result, in order. */
  rest(): Pending[] {
    return this.cases.filter((_, position) => this.#settled[position] === false);
  }

  /** What has been used, and how many cases came back, since this was last asked. */
  usageSince(usage: ChunkUsage): ChunkUsage & { readonly cases: number } {
    const done = this.cases.length - this.#left;
    const step = {
      cases: done - this.#seenCases,
      metricMs: Math.max(0, usage.metricMs - this.#seen.metricMs),
      cpuMs: Math.max(0, usage.cpuMs - this.#seen.cpuMs),
      coreWaitMs: Math.max(0, usage.coreWaitMs - this.#seen.coreWaitMs),
    };
    this.#seen = usage;
    this.#seenCases = done;
    return step;
  }

  /** What the worker has used since its last word, from the outside. */
  notLearned(now: number, times: RunningUsage): Usage {
    const wallMs = now - this.heardAt;
    // How long it has waited for a core is told once it has one; on a busy machine that would look like a metric that waits.
    if (times.isRunnable) return { wallMs, busyMs: wallMs };
    const busyMs = times.cpuMs + times.coreWaitMs - this.#seen.cpuMs - this.#seen.coreWaitMs;
    return { wallMs, busyMs: Math.max(0, busyMs) };
  }
}

/** A metric may ask as often at a time as it likes: no number of listeners is a leak. */
function abortOfMany(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
