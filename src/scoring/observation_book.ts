import { randomBytes } from "node:crypto";

import type { Meter, MeteredUsage } from "../model/meter.js";
import type { Log } from "../worker/log.js";
import { CallMeter } from "./call_meter.js";
import { ObservationError, type Observations, type ObservedCalls, type OpenObservation } from "./observations.js";
import type { Observed } from "./result.js";

/** Observations that ended and whose case does not come, and ids that were used, are remembered only so far. */
const MOST_REMEMBERED = 100_000;

/** An observation that is open. */
class Open implements ObservedCalls {
  readonly beganAt = performance.now();
  readonly #calls: CallMeter;
  /** Ends the calls in flight. */
  readonly #aborts = new Set<() => void>();

  constructor(
    readonly id: string,
    readonly token: string,
    readonly label: string,
    readonly owner: object,
    readonly process: number | undefined,
    total: Meter,
  ) {
    this.#calls = new CallMeter(total, "run");
  }

  get meter(): Meter {
    return this.#calls.meter;
  }

  begin(abort: () => void): () => void {
    const ended = this.#calls.begin();
    this.#aborts.add(abort);
    return () => {
      ended();
      this.#aborts.delete(abort);
    };
  }

  /** Ends the calls in flight; what all used. */
  close(): MeteredUsage {
    const usage = this.#calls.usage();
    for (const abort of this.#aborts) abort();
    return usage;
  }
}

/** Keeps the observations of one sidecar. */
export class ObservationBook implements Observations {
  readonly #open = new Map<string, Open>();
  readonly #byToken = new Map<string, Open>();
  /** Ended; `undefined`: a case has used it. */
  readonly #ended = new Map<string, Observed | undefined>();
  #next = 1;

  constructor(
    /** Counts every observation's model calls too. */
    private readonly total: Meter,
    private readonly log: Log,
  ) {}

  begin(label: string, owner: object, process?: number): OpenObservation {
    const id = `obs-${this.#next++}-${randomBytes(6).toString("hex")}`;
    const token = `sk-skynet-${randomBytes(24).toString("base64url")}`;
    const open = new Open(id, token, label, owner, process, this.total);
    this.#open.set(id, open);
    this.#byToken.set(token, open);
    return { id, token };
  }

  end(id: string): Observed {
    const now = performance.now();
    const open = this.#open.get(id);
    if (open === undefined) {
      if (!this.#ended.has(id)) throw unknown(id);
      throw new ObservationError("already_ended", `observation ${id} was ended before; end each one once`);
    }
    this.#forget(open);
    const observed = { id, runMs: now - open.beganAt, usage: open.close() };
    this.#remember(id, observed);
    const { calls } = observed.usage;
    this.log.debug({ observation: id, label: open.label, run_ms: observed.runMs, calls }, "an observation ended");
    return observed;
  }

  use(id: string): Observed {
    if (this.#open.has(id)) {
      throw new ObservationError("still_open", `observation ${id} was not ended yet; end it before its case is scored`);
    }
    const observed = this.#ended.get(id);
    if (observed !== undefined) {
      this.#ended.set(id, undefined);
      return observed;
    }
    if (!this.#ended.has(id)) throw unknown(id);
    throw new ObservationError("already_used", `observation ${id} belongs to another case already; observe each run`);
  }

  drop(owner: object): void {
    for (const open of [...this.#open.values()]) {
      if (open.owner !== owner) continue;
      this.#forget(open);
      open.close();
      this.log.debug(
        { observation: open.id, label: open.label },
        "an open observation was dropped: its client is gone",
      );
    }
  }

  gatewayOf(token: string): ObservedCalls | undefined {
    return this.#byToken.get(token);
  }

  #forget(open: Open): void {
    this.#open.delete(open.id);
    this.#byToken.delete(open.token);
  }

  #remember(id: string, observed: Observed): void {
    this.#ended.set(id, observed);
    const oldest = this.#ended.size > MOST_REMEMBERED ? this.#ended.keys().next().value : undefined;
    if (oldest !== undefined) this.#ended.delete(oldest);
  }
}

function unknown(id: string): ObservationError {
  return new ObservationError(
    "unknown",
    `no observation is called ${JSON.stringify(id.slice(0, 100))}; use the id that \`begin\` was answered with, on the same sidecar`,
  );
}
