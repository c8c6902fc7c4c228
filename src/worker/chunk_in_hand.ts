import type { Row } from "./types.js";

/** A chunk that a worker has, and for which of its cases the row has been told. */
export class ChunkInHand {
  readonly #told: Uint8Array;

  constructor(
    readonly number: number,
    readonly cases: number,
  ) {
    this.#told = new Uint8Array(cases);
  }

  isTold(position: number): boolean {
    return this.#told[position] === 1;
  }

  /** The rows that have not come before, by the connection or through the outbox; they count as told now. */
  untold(rows: readonly Row[]): readonly Row[] {
    return rows.filter(({ position }) => {
      if (this.#told[position] !== 0) return false;
      this.#told[position] = 1;
      return true;
    });
  }
}

/** Counts up from 1, without the numbers whose low byte is 0: that byte is the outbox's `recall`, and 0 is nobody's. */
export function nextChunkNumber(number: number): number {
  const next = (number + 1) % 2 ** 32;
  return next % 256 === 0 ? next + 1 : next;
}
