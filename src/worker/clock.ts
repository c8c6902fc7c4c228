/** Compares a worker's monotonic clock with this process's `performance.now()`. */
export class WorkerClock {
  readonly #offsetMs: number;

  /**
   * `helloNs`: the worker's clock as it said hello; `receivedAt`: this process's when that arrived. Their difference is off by the
   * time the message took. Where both read the same clock (Linux), the offset is known exactly, and lies close to the difference.
   */
  constructor(helloNs: number, receivedAt: number) {
    const heard = receivedAt - helloNs / 1e6;
    const exact = performance.now() - Number(process.hrtime.bigint()) / 1e6;
    const tookMs = heard - exact;
    this.#offsetMs = tookMs >= -SAME_CLOCK_MS && tookMs <= LONGEST_DELIVERY_MS ? exact : heard;
  }

  /** A moment of the worker's clock on `performance.now()`. */
  local(workerNs: number): number {
    return workerNs / 1e6 + this.#offsetMs;
  }
}

/** Readings of one clock in two processes differ by no more than this. */
const SAME_CLOCK_MS = 1;
/** Clocks that are further apart are not the same one. */
const LONGEST_DELIVERY_MS = 10_000;
