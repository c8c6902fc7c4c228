import type { Call, Pending } from "./call.js";

/** The calls that have cases waiting for a kind of worker, the next one first. */
export class Turns {
  readonly #calls: Call[] = [];

  constructor(
    /** The queue of a call that this is about. */
    private readonly queueOf: (call: Call) => Pending[],
  ) {}

  /** Cases waiting in all. */
  get cases(): number {
    let cases = 0;
    for (const call of this.#calls) cases += this.queueOf(call).length;
    return cases;
  }

  /** The call takes its turn after the others, unless it has one already. */
  join(call: Call): void {
    if (this.queueOf(call).length > 0 && !this.#calls.includes(call)) this.#calls.push(call);
  }

  /** Cases that came back are next. */
  giveBack(call: Call, cases: readonly Pending[]): void {
    if (cases.length === 0 || call.isOver) return;
    this.queueOf(call).unshift(...cases);
    if (!this.#calls.includes(call)) this.#calls.unshift(call);
  }

  /** The next call whose consumer keeps up; it has left the row. */
  next(): Call | undefined {
    const at = this.#calls.findIndex((call) => call.mayRun);
    return at < 0 ? undefined : this.#calls.splice(at, 1)[0];
  }

  leave(call: Call): void {
    this.queueOf(call).length = 0;
    const at = this.#calls.indexOf(call);
    if (at >= 0) this.#calls.splice(at, 1);
  }

  /** Takes every waiting case out. */
  *drain(): Generator<readonly [call: Call, pending: Pending], void, undefined> {
    for (const call of this.#calls.splice(0)) {
      for (const pending of this.queueOf(call).splice(0)) yield [call, pending];
    }
  }
}
