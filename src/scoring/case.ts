import type { ChunkCase, ChunkValues } from "../worker/types.js";
import type { Observed } from "./result.js";

/** UTF-8 bytes of one JSON text, unread. */
export type JsonBytes = Uint8Array;

/**
 * One thing to score, as the scheduler sees it: payloads stay bytes, nothing is parsed. It may be a `ReceivedCase`, whose payloads a spread would
 * lose.
 */
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
  artifact?: JsonBytes;
  /** What was measured of the run that made `output`, where that is known already; absent: `observationId` tells, or a run. */
  readonly observed?: Observed;
  /** What is wrong with a payload that could not even be carried over (a `Value` with NaN); the case is `INVALID_CASE`. */
  readonly fault?: string;
  /** The case as a chunk carries it, where its payloads lie together already; they are known to be fit for that. */
  readonly values?: ChunkCase & ChunkValues;
}

/**
 * A case with all its payloads, as they came in one request with many others: `input`, `output` and `expected`, each followed by a separator.
 * Views of them are made when somebody asks; with hundreds of thousands of cases a second, most of their cost would be that of making views.
 */
export class ReceivedCase implements Case, ChunkCase, ChunkValues {
  readonly seed = undefined;
  readonly observation = undefined;
  artifact?: JsonBytes;

  constructor(
    readonly id: string,
    readonly index: number,
    readonly observationId: string,
    /** What all ranges are of. */
    readonly bytes: Uint8Array,
    /** Where `input` begins. */
    readonly from: number,
    /** Where `output` begins. */
    private readonly outputFrom: number,
    /** Where `expected` begins; at `to - 1` where there is none. */
    private readonly expectedFrom: number,
    readonly to: number,
  ) {}

  get input(): JsonBytes {
    return this.bytes.subarray(this.from, this.outputFrom - 1);
  }

  get output(): JsonBytes {
    return this.bytes.subarray(this.outputFrom, this.expectedFrom - 1);
  }

  get expected(): JsonBytes | undefined {
    const end = this.to - 1;
    return this.expectedFrom === end ? undefined : this.bytes.subarray(this.expectedFrom, end);
  }

  get values(): this {
    return this;
  }
}

/** What a case costs in memory while it is in flight, in bytes. */
export function caseBytes(item: Case): number {
  if (item.values !== undefined) return item.values.to - item.values.from + CASE_OVERHEAD_BYTES;
  const payload = (item.input?.length ?? 0) + (item.output?.length ?? 0) + (item.expected?.length ?? 0);
  // An artifact belongs to a whole request and is counted by none of its cases.
  return payload + CASE_OVERHEAD_BYTES;
}

/** Object, id and queue entry: a rounded estimate. */
const CASE_OVERHEAD_BYTES = 200;
