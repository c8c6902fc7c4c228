import { Big } from "big.js";
import { readFileSync } from "node:fs";
import { z } from "zod";

import type { Price } from "./cost.js";

/** Prices of the user's own, which come before the catalogue's. */
export interface PriceEntry {
  /** A model's name, in which `*` stands for any text. */
  readonly model: RegExp;
  /** The host of the base URL, likewise; `undefined`: any. */
  readonly provider: RegExp | undefined;
  readonly price: Price;
}

/**
 * Reads a `--prices` file. Throws an error that names the file and the key where it cannot be used.
 *
 * ```json
 * {"prices": [{"model": "my-judge*", "provider": "llm.example.com", "input": 0.15, "cached_input": 0.075, "output": 0.6}]}
 * ```
 * Prices are US dollars per million tokens. `cached_input` is `input` where it is absent, `provider` any. The first entry that fits counts.
 */
export function readPriceFile(path: string): readonly PriceEntry[] {
  const parsed = schema.safeParse(readJson(path));
  if (parsed.success) return parsed.data.prices.map(toEntry);
  const [issue] = parsed.error.issues;
  throw new Error(`the prices in ${path} cannot be used: ${keyOf(issue?.path ?? [])}: ${issue?.message ?? "wrong"}`);
}

/** The entry's price that fits; the first of them. */
export function priceOf(entries: readonly PriceEntry[], host: string, model: string): Price | undefined {
  return entries.find((entry) => entry.model.test(model) && (entry.provider?.test(host) ?? true))?.price;
}

const usdPerMillion = z.number().min(0);
const name = z.string().min(1);
const schema = z.strictObject({
  prices: z.array(
    z.strictObject({
      model: name,
      provider: name.optional(),
      input: usdPerMillion,
      cached_input: usdPerMillion.optional(),
      output: usdPerMillion,
    }),
  ),
});

type Written = z.infer<typeof schema>["prices"][number];

function toEntry({ model, provider, input, cached_input, output }: Written): PriceEntry {
  const rate = (price: number) => ({ base: new Big(price), tiers: [] });
  return {
    model: pattern(model),
    provider: provider === undefined ? undefined : pattern(provider),
    price: {
      input: rate(input),
      cachedInput: cached_input === undefined ? undefined : rate(cached_input),
      cacheWrite: undefined,
      output: rate(output),
      reasoning: undefined,
      perCall: new Big(0),
    },
  };
}

/** Names are compared without regard to case, as the catalogue does. */
function pattern(text: string): RegExp {
  const parts = text.split("*").map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "is");
}

function readJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`the prices cannot be read: ${messageOf(error)}`, { cause: error });
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new Error(`the prices in ${path} are not JSON: ${messageOf(error)}`, { cause: error });
  }
}

function keyOf(path: readonly PropertyKey[]): string {
  const key = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return key === "" ? "the file" : key.replace(/^\./, "");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
