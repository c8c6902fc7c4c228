const FIRST_DELAY_MS = 10;
const LONGEST_DELAY_MS = 30_000;

/** What a start remembers of the moment when it was made. */
export interface StartStamp {
  readonly series: number;
  readonly level: number;
}

/**
 * How long to wait before the next start. The first failure costs nothing, each further one in a row doubles the delay; a success ends the row.
 * Starts that were made together and fail together count once: 64 workers that are killed at one stroke are one failure.
 */
export class Backoff {
  #series = 0;
  #level = 0;
  #notBefore = 0;

  stamp(): StartStamp {
    return { series: this.#series, level: this.#level };
  }

  failed({ series, level }: StartStamp): void {
    const reached = series === this.#series ? level + 1 : 1;
    if (reached <= this.#level) return;
    this.#level = reached;
    this.#notBefore = performance.now() + delayMs(reached);
  }

  /**
   * What was started at `stamp` works. Returns whether that ended a row of failures: it does where that start was made after the last of them,
   * as older ones say nothing of whether starts succeed now.
   */
  succeeded({ series, level }: StartStamp): boolean {
    if (this.#level === 0 || series !== this.#series || level < this.#level) return false;
    this.#series += 1;
    this.#level = 0;
    this.#notBefore = 0;
    return true;
  }

  /** Milliseconds from now until the next start. */
  waitMs(): number {
    return Math.max(0, this.#notBefore - performance.now());
  }
}

function delayMs(level: number): number {
  return level < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (level - 2), LONGEST_DELAY_MS);
}
