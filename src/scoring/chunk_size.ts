/** A chunk should take about this long, so that a message's cost is spread and every worker still has work. */
const CHUNK_MS = 5;
/** Cases of a chunk at most: enough that its own cost is nothing, and few enough that results keep coming. */
export const MAX_CHUNK_CASES = 1024;
/** A case weighs this much of what it did when the next one of its chunk ended: the mean follows the last few chunks. */
const MEMORY = 0.8;

/** Learns how long the metric takes and tells how many cases to give a worker at once. */
export class ChunkSize {
  #milliseconds = 0;
  #cases = 0;

  /** Mean time of the metric a case, in milliseconds; `undefined` before the first result. */
  get meanMs(): number | undefined {
    return this.#cases === 0 ? undefined : this.#milliseconds / this.#cases;
  }

  /** Whether a chunk of as many cases as may be is over before the time that one should take. */
  get isFast(): boolean {
    const mean = this.meanMs;
    return mean !== undefined && mean * MAX_CHUNK_CASES < CHUNK_MS;
  }

  /** `cases` of a chunk took `milliseconds` in the metric. */
  learn(cases: number, milliseconds: number): void {
    if (cases === 0) return;
    this.#milliseconds = this.#milliseconds * MEMORY + milliseconds;
    this.#cases = this.#cases * MEMORY + cases;
  }

  /** How many of `queued` cases a worker gets, where `workers` share them. At least 1; 1 as long as nothing is known. */
  next(queued: number, workers: number): number {
    const mean = this.meanMs;
    if (mean === undefined) return 1;
    const inTime = mean <= 0 ? MAX_CHUNK_CASES : Math.floor(CHUNK_MS / mean);
    return Math.max(1, Math.min(inTime, MAX_CHUNK_CASES, Math.ceil(queued / Math.max(1, workers))));
  }
}
