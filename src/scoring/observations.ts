import type { Meter } from "../model/meter.js";
import type { Observed } from "./result.js";

/** Why an observation could not be begun, ended or used. */
export class ObservationError extends Error {
  override readonly name = "ObservationError";

  constructor(
    readonly code: "unknown" | "still_open" | "already_ended" | "already_used",
    message: string,
  ) {
    super(message);
  }
}

/** An observation that was opened. */
export interface OpenObservation {
  readonly id: string;
  /** The key under which the run's model calls through the gateway are metered, until the observation ends. Never logged. */
  readonly token: string;
}

/**
 * Measures runs of artifacts: time by this process's monotonic clock, model calls by the gateway's meter. The sidecar's own runs and those
 * that an engine does are measured alike.
 */
export interface Observations {
  /**
   * Opens one for `owner`, which is whatever `drop` will be called with: an `Observe` call, or a run. `process`: the id of the one that its
   * model calls come from, with what it starts; absent: from anywhere.
   */
  begin(label: string, owner: object, process?: number): OpenObservation;

  /** Closes one and tells what was measured. Its token is worth nothing from then on. Throws `ObservationError` unknown, already_ended. */
  end(id: string): Observed;

  /** What was measured, for the one case that it belongs to. Throws `ObservationError` unknown, still_open, already_used. */
  use(id: string): Observed;

  /** Forgets the open observations of an owner that is gone; those that ended stay until a case has used them. */
  drop(owner: object): void;

  /** The gateway's side of an open observation; `undefined` for a token that is wrong or finished. */
  gatewayOf(token: string): ObservedCalls | undefined;
}

/** The model calls of one observation, as the gateway makes them. */
export interface ObservedCalls {
  /** Counts them. */
  readonly meter: Meter;
  /** The process that they have to come from, or from one that it started; `undefined`: from anywhere. */
  readonly process: number | undefined;
  /**
   * A call begins; what is returned is to be called when it has been counted. Where the observation ends before that, its cost is
   * not measured, and `abort` is called, as nobody waits for the answer any more.
   */
  begin(abort: () => void): () => void;
}
