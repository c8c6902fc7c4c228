import type { Budget } from "./budget.js";
import { addCosts, NO_COST, type Cost } from "./cost.js";
import type { Charge } from "./chat_answer.js";
import type { Meter } from "./meter.js";
import type { Prices } from "./prices.js";
import { addTokens, type TokenUsage } from "./token_usage.js";

/** What every model call of the sidecar goes through, whoever makes it: its price, and the limit on all. */
export class ModelAccount {
  #prices: Promise<Prices> | undefined;

  constructor(
    /** Called once, before the first call. */
    private readonly openPrices: () => Promise<Prices>,
    readonly budget: Budget,
  ) {}

  /** Does what the first call would otherwise wait for. */
  async warmUp(): Promise<void> {
    await (this.#prices ??= this.openPrices());
  }

  /**
   * Opens the bill of one call to `model`, which may take several requests; `meter` counts the call when the bill is closed.
   * Throws `ModelCallError` `budget_spent`; such a call was never made, and no meter counts it.
   */
  async open(model: string, meter: Meter | undefined): Promise<CallBill> {
    const prices = await (this.#prices ??= this.openPrices());
    this.budget.admit();
    return new CallBill(model, prices, this.budget, meter);
  }
}

/** The bill of one model call. Closed exactly once, however the call ends. */
export class CallBill {
  #usage: TokenUsage | undefined;
  #cost: Cost = NO_COST;
  #isClosed = false;

  constructor(
    readonly model: string,
    private readonly prices: Prices,
    private readonly budget: Budget,
    private readonly meter: Meter | undefined,
  ) {}

  /** Before each further request to the provider. Throws `ModelCallError` `budget_spent`. */
  admit(): void {
    this.budget.admit();
  }

  /** The provider answered one request of the call and bills it. */
  charge(charge: Charge): void {
    const tokens = charge.usage.tokens;
    if (tokens !== undefined) this.#usage = this.#usage === undefined ? tokens : addTokens(this.#usage, tokens);
    this.#cost = addCosts(this.#cost, this.prices.costOf(this.model, charge));
  }

  /** The provider may bill one request of the call, and nobody can tell how much. */
  chargeUnknown(reason: string): void {
    this.#cost = addCosts(this.#cost, { usd: undefined, reason });
  }

  /** Counts the call, and tells what it used. */
  close(): { readonly model: string; readonly usage: TokenUsage | undefined; readonly cost: Cost } {
    const call = { model: this.model, usage: this.#usage, cost: this.#cost };
    if (this.#isClosed) return call;
    this.#isClosed = true;
    this.budget.record(call);
    this.meter?.record(call);
    return call;
  }
}
