import type { CasePool } from "./cases.js";
import { scanResults } from "./scan_results.js";

/** Checks the responses of one stream: each index exactly once, each with the score that its case must have. */
export class ResultCheck {
  private readonly seen: Uint8Array;
  private count = 0;
  private scoreSum = 0;
  private feedbackBytes = 0;

  /** For a stream that sends the whole pool `cycles` times. */
  constructor(
    private readonly pool: CasePool,
    cycles: number,
  ) {
    this.seen = new Uint8Array(pool.scores.length * cycles);
  }

  /** How many results came so far. */
  get taken(): number {
    return this.count;
  }

  /** Takes one encoded response; returns how many results it held. Throws at the first wrong one. */
  take(response: Buffer): number {
    const count = scanResults(response, this.visit);
    this.count += count;
    return count;
  }

  /** What the whole stream came to. Throws where a result is missing. */
  finish(): StreamResults {
    const missing = this.seen.length - this.count;
    if (missing !== 0) throw new Error(`${missing} of ${this.seen.length} results are missing`);
    return {
      cases: this.count,
      meanScore: this.scoreSum / this.count,
      meanFeedbackBytes: this.feedbackBytes / this.count,
    };
  }

  private readonly visit = (index: number, value: number | undefined, feedbackBytes: number): void => {
    if (this.seen[index] !== 0) {
      throw new Error(`result ${index} came twice, or was never asked for (${this.seen.length} cases)`);
    }
    this.seen[index] = 1;
    const expected = this.pool.scores[index % this.pool.scores.length];
    if (value !== expected) throw new Error(`case ${index} scored ${value ?? "an error"}, expected ${expected}`);
    this.scoreSum += value ?? 0;
    this.feedbackBytes += feedbackBytes;
  };
}

/** Equal for two servers that answer the same pool alike. */
export interface StreamResults {
  readonly cases: number;
  readonly meanScore: number;
  readonly meanFeedbackBytes: number;
}
