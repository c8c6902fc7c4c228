import type { Log } from "./log.js";

/** What fails again and again is told so often at most. */
const EVERY_MS = 10_000;

/** Something to warn of that may happen thousands of times: the first one is told, then one in ten seconds, which says how many came since. */
export class RareWarning {
  #toldAt = -Infinity;
  #untold = 0;

  constructor(private readonly log: Log) {}

  warn(fields: object, message: string): void {
    const now = performance.now();
    if (now - this.#toldAt < EVERY_MS) {
      this.#untold += 1;
      return;
    }
    const since =
      this.#untold === 0 ? "" : ` (and ${this.#untold} times more in the last ${seconds(now - this.#toldAt)} s)`;
    this.#toldAt = now;
    this.#untold = 0;
    this.log.warn(fields, `${message}${since}`);
  }
}

function seconds(milliseconds: number): number {
  return Math.round(milliseconds / 1000);
}
