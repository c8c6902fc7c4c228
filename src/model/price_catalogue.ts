import { calcPrice, type ModelPrice } from "@pydantic/genai-prices";
import { Big } from "big.js";

import type { Price, Rate } from "./cost.js";

/**
 * The price of a model in the catalogue that ships with this release; nothing is fetched. `undefined` where it has none.
 *
 * A base URL that the catalogue knows decides whose prices count. Behind any other (a proxy, a gateway, this machine) the model's own maker is assumed,
 * found by the model's name, such as `gpt-4o-mini` or `openai/gpt-4o-mini`.
 */
export function cataloguePrice(baseUrl: string, model: string): Price | undefined {
  const direct = calcPrice({}, model, { providerApiUrl: baseUrl }) ?? calcPrice({}, model);
  const found = direct ?? calcPrice({}, model, { providerId: "litellm" });
  return found === null ? undefined : toPrice(found.model_price);
}

function toPrice(prices: ModelPrice): Price | undefined {
  const input = toRate(prices["input_mtok"]);
  const output = toRate(prices["output_mtok"]);
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    cachedInput: toRate(prices["cache_read_mtok"]),
    cacheWrite: toRate(prices["cache_write_mtok"]),
    reasoning: toRate(prices["output_reasoning_mtok"]),
    perCall: (toRate(prices["requests_kcount"])?.base ?? new Big(0)).times(ONE_THOUSANDTH),
  };
}

const ONE_THOUSANDTH = new Big("0.001");

/** The catalogue's numbers are the shortest that stand for their decimals, so nothing is lost. */
function toRate(price: ModelPrice[string]): Rate | undefined {
  if (price === undefined) return undefined;
  if (typeof price === "number") return { base: new Big(price), tiers: [] };
  const tiers = price.tiers.map((tier) => ({ over: tier.start, price: new Big(tier.price) }));
  return { base: new Big(price.base), tiers };
}
