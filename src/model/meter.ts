import { Big } from "big.js";

import { NO_COST, type Cost } from "./cost.js";
import { addTokens, NO_TOKENS, type TokenUsage } from "./token_usage.js";

/** What one model call used. */
export interface MeteredCall {
  /** `undefined` where the provider did not tell. */
  readonly usage: TokenUsage | undefined;
  readonly cost: Cost;
}

/** What a number of model calls used. */
export interface MeteredUsage extends TokenUsage {
  readonly calls: number;
  /** What all calls cost; not known where one call's is not. 0 without calls. */
  readonly cost: Cost;
  /** The calls whose cost is known cost that much. */
  readonly knownUsd: Big;
  /** The number of the others. */
  readonly callsOfUnknownCost: number;
}

/** Adds up model calls: those of a case's judge, of an observation, or of the whole sidecar. */
export class Meter {
  #calls = 0;
  #tokens: TokenUsage = NO_TOKENS;
  #knownUsd: Big = new Big(0);
  #callsOfUnknownCost = 0;
  #reason: string | undefined;

  /** Whatever this one counts, `whole` counts too. */
  constructor(private readonly whole?: Meter) {}

  record(call: MeteredCall): void {
    this.#calls += 1;
    if (call.usage !== undefined) this.#tokens = addTokens(this.#tokens, call.usage);
    if (call.cost.usd !== undefined) {
      this.#knownUsd = this.#knownUsd.plus(call.cost.usd);
    } else {
      this.#callsOfUnknownCost += 1;
      this.#reason ??= call.cost.reason;
    }
    this.whole?.record(call);
  }

  get calls(): number {
    return this.#calls;
  }

  usage(): MeteredUsage {
    return {
      ...this.#tokens,
      calls: this.#calls,
      cost: this.#cost(),
      knownUsd: this.#knownUsd,
      callsOfUnknownCost: this.#callsOfUnknownCost,
    };
  }

  #cost(): Cost {
    if (this.#calls === 0) return NO_COST;
    if (this.#reason === undefined) return { usd: this.#knownUsd };
    if (this.#calls === 1) return { usd: undefined, reason: this.#reason };
    return { usd: undefined, reason: `${this.#callsOfUnknownCost} of ${this.#calls} model calls: ${this.#reason}` };
  }
}
