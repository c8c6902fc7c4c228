import { Big } from "big.js";

import type { Log } from "../worker/log.js";
import { ModelCallError } from "./call_error.js";
import type { MeteredCall } from "./meter.js";

/**
 * Keeps what model calls cost under `--max-cost`. Calls in flight when the limit is reached may end, so it can be passed by what they cost.
 * Calls whose cost is not known cannot be counted: they are told of once in the log, and in the error.
 */
export class Budget {
  #spentUsd = new Big(0);
  #callsOfUnknownCost = 0;

  constructor(
    /** `undefined`: no limit. */
    readonly maxUsd: Big | undefined,
    private readonly log: Log,
  ) {}

  /** Whether no further call may begin. */
  get isSpent(): boolean {
    return this.maxUsd !== undefined && this.#spentUsd.gte(this.maxUsd);
  }

  /** To be called before each request to the provider. Throws `ModelCallError` `budget_spent`. */
  admit(): void {
    if (this.maxUsd === undefined || !this.isSpent) return;
    const spent = `${usd(this.#spentUsd)} of ${usd(this.maxUsd)} is spent${this.#besides()}`;
    throw new ModelCallError({
      kind: "budget_spent",
      message: `no more model calls: ${spent}; raise --max-cost to make more`,
    });
  }

  record({ cost }: MeteredCall): void {
    if (cost.usd !== undefined) {
      const wasSpent = this.isSpent;
      this.#spentUsd = this.#spentUsd.plus(cost.usd);
      if (this.isSpent && !wasSpent) {
        this.log.warn({ spent_usd: this.#spentUsd.toFixed() }, "--max-cost is spent: no more model calls");
      }
      return;
    }
    this.#callsOfUnknownCost += 1;
    if (this.maxUsd === undefined || this.#callsOfUnknownCost > 1) return;
    this.log.warn({}, `--max-cost does not count calls of unknown cost, and there is one now: ${cost.reason}`);
  }

  #besides(): string {
    const calls = this.#callsOfUnknownCost;
    if (calls === 0) return "";
    return calls === 1 ? ", besides 1 call of unknown cost" : `, besides ${calls} calls of unknown cost`;
  }
}

function usd(amount: Big): string {
  return `$${amount.round(6).toFixed()}`;
}
