import type { Observed } from "./result.js";

/** UTF-8 bytes of one JSON text, unread. */
export type JsonBytes = Uint8Array;

/** One thing to score, as the scheduler sees it: payloads stay bytes, nothing is parsed. */
export interface Case {
  /** The client's own name for the case; empty where it gave none. */
  readonly id: string;
  /** Its place among all cases of the call, from 0. */
  readonly index: number;
  /** `undefined`: absent. */
  readonly input: JsonBytes | undefined;
  /** `undefined`: absent; where there is an artifact, it is run. */
  readonly output: JsonBytes | undefined;
  /** `undefined`: absent. */
  readonly expected: JsonBytes | undefined;
  /** Empty where no observation belongs to the case. */
  readonly observationId: string;
  /** The artifact of the request that brought the case; absent: none. */
  readonly artifact?: JsonBytes;
  /** What was measured of the run that made `output`, where that is known already; absent: `observationId` tells, or a run. */
  readonly observed?: Observed;
  /** What is wrong with a payload that could not even be carried over (a `Value` with NaN); the case is `INVALID_CASE`. */
  readonly fault?: string;
}

/** What a case costs in memory while it is in flight, in bytes. */
export function caseBytes(item: Case): number {
  const payload = (item.input?.length ?? 0) + (item.output?.length ?? 0) + (item.expected?.length ?? 0);
  // An artifact belongs to a whole request and is counted by none of its cases.
  return payload + CASE_OVERHEAD_BYTES;
}

/** Object, id and queue entry: a rounded estimate. */
const CASE_OVERHEAD_BYTES = 200;
