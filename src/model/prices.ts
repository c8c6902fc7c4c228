import type { Charge } from "./chat_answer.js";
import { costOf, type Cost, type Price } from "./cost.js";
import { oneLine } from "./one_line.js";
import { priceOf, type PriceEntry } from "./price_file.js";

/** Looks a model's price up; `undefined` where there is none. */
export type PriceLookup = (baseUrl: string, model: string) => Price | undefined;

/** The catalogue is 0.8 MB of code, and loaded where a model is called. */
export async function openCatalogue(): Promise<PriceLookup> {
  const { cataloguePrice } = await import("./price_catalogue.js");
  return cataloguePrice;
}

/** Tells what model calls cost at one provider. */
export class Prices {
  readonly #found = new Map<string, { readonly price: Price | undefined; readonly until: number }>();
  readonly #host: string;

  constructor(
    private readonly baseUrl: string,
    /** The user's own, which come first. */
    private readonly entries: readonly PriceEntry[],
    private readonly catalogue: PriceLookup,
  ) {
    this.#host = new URL(baseUrl).hostname;
  }

  /**
   * What a call cost. The user's own price for either name of the model comes first, then the catalogue's for the model that answered, then for
   * the one that was asked, which may be an alias.
   */
  costOf(asked: string, { usage, answeredBy = asked, serviceTier }: Charge): Cost {
    if (usage.tokens === undefined) return { usd: undefined, reason: usage.reason };
    if (usage.tokens.audioTokens > 0) {
      return { usd: undefined, reason: "the call has audio tokens, whose price is not known" };
    }
    const own = priceOf(this.entries, this.#host, asked) ?? priceOf(this.entries, this.#host, answeredBy);
    if (own !== undefined) return { usd: costOf(usage.tokens, own) };
    if (serviceTier !== undefined && !PLAIN_TIERS.has(serviceTier)) {
      return notKnown(`the service tier ${JSON.stringify(oneLine(serviceTier, 40))}`);
    }
    const price = this.#fromCatalogue(answeredBy) ?? this.#fromCatalogue(asked);
    if (price !== undefined) return { usd: costOf(usage.tokens, price) };
    return notKnown(`the model ${JSON.stringify(oneLine(asked, 100))}`);
  }

  #fromCatalogue(model: string): Price | undefined {
    const known = this.#found.get(model);
    if (known !== undefined && performance.now() < known.until) return known.price;
    const price = this.catalogue(this.baseUrl, model);
    if (this.#found.size >= MOST_KNOWN) this.#found.clear();
    this.#found.set(model, { price, until: performance.now() + LOOKED_UP_AGAIN_MS });
    return price;
  }
}

function notKnown(whose: string): Cost {
  return { usd: undefined, reason: `the price of ${whose} is not known; give it by --prices FILE` };
}

const PLAIN_TIERS: ReadonlySet<string> = new Set(["default", "standard", "auto", "on_demand"]);
/** A look-up takes some 0.1 ms, and some prices depend on the time of day. */
const LOOKED_UP_AGAIN_MS = 10_000;
/** Models are named by whoever calls, so their number has a bound. */
const MOST_KNOWN = 1000;
