/**
 * How many workers may be starting at once: any number, until a start fails. Then one, and twice as many with each start that succeeds, so that
 * where the system has no room for more (processes, descriptors, memory) every retry costs one attempt and not one a missing worker.
 */
export class SlowStart {
  #most = Infinity;

  failed(): void {
    this.#most = 1;
  }

  /** Returns whether more may start now than before. */
  succeeded(): boolean {
    if (this.#most === Infinity) return false;
    this.#most *= 2;
    return true;
  }

  /** How many more may start while `starting` do. */
  room(starting: number): number {
    return Math.max(0, this.#most - starting);
  }
}
