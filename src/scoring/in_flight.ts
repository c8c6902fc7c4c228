/** How much one call may have in flight: cases read whose result the consumer has not taken yet. */
export interface FlightLimits {
  /** Cases, a call. */
  readonly callCases: number;
  /** Bytes of payloads and of results, a call. */
  readonly callBytes: number;
  /** Bytes of payloads and of results, all calls together. */
  readonly totalBytes: number;
  /** Bytes of results that a call may have standing unread however much all others have. */
  readonly leastBytes: number;
}

/**
 * Cases: enough that workers with a chunk of a thousand cases each never wait for the network. Bytes: a call of large cases has one
 * in hand and one coming; all calls together stay well under what a small machine has.
 */
export const DEFAULT_FLIGHT_LIMITS: FlightLimits = {
  callCases: 8192,
  callBytes: 32 * 1024 * 1024,
  totalBytes: 256 * 1024 * 1024,
  leastBytes: 1024 * 1024,
};

/** What all calls of a scorer have in flight. */
export class TotalFlight {
  #bytes = 0;
  readonly #waiting = new Set<CallFlight>();
  /** Calls that keep their results until they end, in the order in which they began. */
  readonly #keeping = new Set<CallFlight>();

  constructor(readonly limits: FlightLimits = DEFAULT_FLIGHT_LIMITS) {}

  get bytes(): number {
    return this.#bytes;
  }

  /** @internal Used by `CallFlight`. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (bytes < 0) for (const call of this.#waiting) call.recheck();
  }

  /** @internal Used by `CallFlight`. */
  keep(call: CallFlight, keeps: boolean): void {
    if (keeps) this.#keeping.add(call);
    else this.#keeping.delete(call);
  }

  /** @internal Used by `CallFlight`. */
  isFirstToKeep(call: CallFlight): boolean {
    const [first] = this.#keeping;
    return first === call;
  }

  /** @internal Used by `CallFlight`. */
  wait(call: CallFlight, waiting: boolean): void {
    if (waiting) this.#waiting.add(call);
    else this.#waiting.delete(call);
  }
}

/** What one call has in flight, and whether it may take more. */
export class CallFlight {
  #cases = 0;
  #bytes = 0;
  #roomMade: (() => void) | undefined;
  #keeps = false;

  constructor(readonly total: TotalFlight) {}

  get cases(): number {
    return this.#cases;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The call's results are one response: it has them all before any is taken. */
  keepResults(): void {
    this.#keeps = true;
    this.total.keep(this, true);
  }

  get keepsResults(): boolean {
    return this.#keeps;
  }

  /**
   * Whether more results may be made for the call, with `standing` bytes of them unread. Where all calls together have too much, those whose
   * results are read go on, and of those that keep theirs the one that began first, so that there is always one that ends.
   */
  mayRun(standing: number): boolean {
    const { callBytes, totalBytes, leastBytes } = this.total.limits;
    const isFull = this.total.bytes >= totalBytes;
    if (this.#keeps) return !isFull || this.total.isFirstToKeep(this);
    return standing < (isFull ? leastBytes : callBytes);
  }

  /** Changes what is in flight; negative numbers release. */
  add(cases: number, bytes: number): void {
    this.#cases += cases;
    this.#bytes += bytes;
    this.total.add(bytes);
    if (cases < 0 || bytes < 0) this.recheck();
  }

  /** Resolves when the call may take another batch. At most one caller waits at a time. */
  async room(): Promise<void> {
    if (this.#hasRoom()) return;
    this.total.wait(this, true);
    await new Promise<void>((resolve) => (this.#roomMade = resolve));
    this.total.wait(this, false);
  }

  /** Releases everything and whoever waits: the call is over. */
  close(): void {
    this.total.wait(this, false);
    this.total.keep(this, false);
    this.add(-this.#cases, -this.#bytes);
    this.#wake();
  }

  /** @internal Used by `TotalFlight`. */
  recheck(): void {
    if (this.#roomMade !== undefined && this.#hasRoom()) this.#wake();
  }

  #wake(): void {
    const resolve = this.#roomMade;
    this.#roomMade = undefined;
    resolve?.();
  }

  /** A call with nothing in flight always has room, so that slow consumers elsewhere never stop it. */
  #hasRoom(): boolean {
    if (this.#cases === 0) return true;
    const { callCases, callBytes, totalBytes } = this.total.limits;
    return this.#cases < callCases && this.#bytes < callBytes && this.total.bytes < totalBytes;
  }
}
