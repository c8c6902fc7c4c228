import { Big } from "big.js";

import type { TokenUsage } from "./token_usage.js";

/** What model calls cost in US dollars, exactly; or why that is not known, which is not the same as 0. */
export type Cost =
  { readonly usd: Big; readonly reason?: undefined } | { readonly usd: undefined; readonly reason: string };

/** Of nothing: known, and 0 US dollars. */
export const NO_COST: Cost = { usd: new Big(0) };

/** The sum is known only where both are; the first reason is kept. */
export function addCosts(a: Cost, b: Cost): Cost {
  if (a.usd === undefined) return a;
  if (b.usd === undefined) return b;
  return { usd: a.usd.plus(b.usd) };
}

/** Prices in US dollars per million tokens; `undefined`: the same as the kind of token that it is a part of. */
export interface Price {
  readonly input: Rate;
  readonly cachedInput: Rate | undefined;
  readonly cacheWrite: Rate | undefined;
  readonly output: Rate;
  readonly reasoning: Rate | undefined;
  /** In US dollars, for each call, whatever its tokens. */
  readonly perCall: Big;
}

/** A price that may depend on how long the whole prompt is. */
export interface Rate {
  readonly base: Big;
  /** The last tier whose `over` the prompt's tokens exceed counts, for all tokens of the call. */
  readonly tiers: readonly { readonly over: number; readonly price: Big }[];
}

/** Tokens times price. Cached tokens are billed once, at their own price: uncached = prompt − cached. */
export function costOf(tokens: TokenUsage, price: Price): Big {
  const { promptTokens, cachedPromptTokens, cacheWriteTokens, completionTokens, reasoningTokens } = tokens;
  const billed = (count: number, rate: Rate) => rateFor(promptTokens, rate).times(count);
  const reasoningApart = price.reasoning === undefined ? 0 : reasoningTokens;
  const millionths = billed(promptTokens - cachedPromptTokens - cacheWriteTokens, price.input)
    .plus(billed(cachedPromptTokens, price.cachedInput ?? price.input))
    .plus(billed(cacheWriteTokens, price.cacheWrite ?? price.input))
    .plus(billed(completionTokens - reasoningApart, price.output))
    .plus(billed(reasoningApart, price.reasoning ?? price.output));
  return millionths.times(ONE_MILLIONTH).plus(price.perCall);
}

const ONE_MILLIONTH = new Big("0.000001");

function rateFor(promptTokens: number, { base, tiers }: Rate): Big {
  return tiers.findLast((tier) => promptTokens > tier.over)?.price ?? base;
}
