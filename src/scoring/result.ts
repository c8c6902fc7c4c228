import type { MeteredUsage } from "../model/meter.js";
import type { JsonBytes } from "./case.js";

/** The kinds of fault that cost a case its score; `CASE_ERROR_CODE_…` in the API, each in docs/errors.md. */
export type CaseErrorCode =
  | "INVALID_CASE"
  | "METRIC_EXCEPTION"
  | "METRIC_RETURN_VALUE"
  | "METRIC_TIMEOUT"
  | "METRIC_CRASHED"
  | "RUN_EXCEPTION"
  | "RUN_TIMEOUT"
  | "RUN_CRASHED"
  | "RUN_RETURN_VALUE";

/** A metric's verdict on one case. Texts stay the UTF-8 bytes that the worker wrote. */
export interface Score {
  readonly kind: "score";
  readonly value: number;
  readonly feedback: Uint8Array;
  readonly scores: readonly (readonly [name: string, value: number])[];
  /** The other side info, a JSON object; empty where there is none. */
  readonly sideInfo: Uint8Array;
}

/** Why a case has no score. */
export interface CaseError {
  readonly kind: "error";
  readonly code: CaseErrorCode;
  readonly message: string;
  /** The whole Python traceback: for the sidecar's log and the contract check, never for an engine. */
  readonly traceback: string;
}

export type Outcome = Score | CaseError;

/** What came of one case; every case gets exactly one. */
export interface CaseResult {
  readonly id: string;
  readonly index: number;
  readonly outcome: Outcome;
  /** Milliseconds from the case's arrival until the metric began on it. */
  readonly queuedMs: number;
  /** Milliseconds that the metric ran; 0 where it never began. */
  readonly metricMs: number;
  /** What was measured of the run that produced the output; absent where no observation belongs to the case. */
  readonly observation?: Observed;
  /** What the metric's own model calls used; absent where it made none. */
  readonly metricUsage?: MeteredUsage;
  /** Whether the sidecar ran the artifact. */
  readonly isRun?: boolean;
  /** What the sidecar's run returned. */
  readonly output?: JsonBytes;
}

/** What Skynet measured of one run of an artifact. */
export interface Observed {
  readonly id: string;
  /** Milliseconds on the sidecar's monotonic clock. */
  readonly runMs: number;
  /** What the run's model calls through the gateway used, and what they cost or why that is not known. */
  readonly usage: MeteredUsage;
}
