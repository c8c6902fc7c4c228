import type { Charge } from "./chat_answer.js";
import { costOf, type Cost, type Price } from "./cost.js";
import { oneLine } from "./one_line.js";
import { priceOf, type PriceEntry } from "./price_file.js";

/** Looks a model's price up in the catalogue; see price_catalogue.ts. */
export type CataloguePrice = (baseUrl: string, model: string) => Price | undefined;

/** Tells what a model call cost at one provider. */
export class Prices {
  readonly #found = new Map<string, { readonly price: Price | undefined; readonly until: number }>();
  readonly #host: string;

  constructor(
    private readonly baseUrl: string,
    /** The user's own, which come first. */
    private readonly entries: readonly PriceEntry[],
    private readonly catalogue: CataloguePrice,
  ) {
    this.#host = new URL(baseUrl).hostname;
  }

  /** `undefined` where nobody knows one. */
  priceOf(model: string): Price | undefined {
    const known = this.#found.get(model);
    if (known !== undefined && performance.now() < known.until) return known.price;
    const price = priceOf(this.entries, this.#host, model) ?? this.catalogue(this.baseUrl, model);
    if (this.#found.size >= MOST_KNOWN) this.#found.clear();
    this.#found.set(model, { price, until: performance.now() + LOOKED_UP_AGAIN_MS });
    return price;
  }

  /**
   * What a call cost. The user's own price for either name of the model comes first, then the catalogue's for the model that answered, then for the one
   * that was asked, which may be an alias.
   */
  costOf(asked: string, charge: Charge): Cost {
    const { usage, answeredBy = asked, serviceTier } = charge;
    if (usage.tokens === undefined) return { usd: undefined, reason: usage.reason };
    if (usage.tokens.audioTokens > 0) {
      return { usd: undefined, reason: "the call has audio tokens, whose price is not known" };
    }
    const own = priceOf(this.entries, this.#host, asked) ?? priceOf(this.entries, this.#host, answeredBy);
    if (own !== undefined) return { usd: costOf(usage.tokens, own) };
    if (serviceTier !== undefined && !PLAIN_TIERS.has(serviceTier)) {
      const reason = `the price of the service tier ${JSON.stringify(oneLine(serviceTier, 40))} is not known; give it by --prices FILE`;
      return { usd: undefined, reason };
    }
    const price = this.priceOf(answeredBy) ?? this.priceOf(asked);
    if (price !== undefined) return { usd: costOf(usage.tokens, price) };
    const model = JSON.stringify(oneLine(asked, 100));
    return { usd: undefined, reason: `the price of the model ${model} is not known; give it by --prices FILE` };
  }
}

const PLAIN_TIERS: ReadonlySet<string> = new Set(["default", "standard", "auto", "on_demand"]);
/** A look-up takes some 0.1 ms, and some prices depend on the time of day. */
const LOOKED_UP_AGAIN_MS = 10_000;
/** Models are named by whoever calls, so their number has a bound. */
const MOST_KNOWN = 1000;
