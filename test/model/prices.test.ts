import { calcPrice, findProvider } from "@pydantic/genai-prices";
import { describe, expect, test } from "vitest";

import type { Charge } from "../../src/model/chat_answer.js";
import { cataloguePrice } from "../../src/model/price_catalogue.js";
import type { PriceEntry } from "../../src/model/price_file.js";
import { Prices } from "../../src/model/prices.js";
import { readUsage } from "../../src/model/token_usage.js";

const OPENAI = "https://api.openai.com/v1";

function charge(usage: unknown, fields: Partial<Charge> = {}): Charge {
  return { usage: readUsage(usage), answeredBy: undefined, serviceTier: undefined, ...fields };
}

function usd(asked: string, bill: Charge, baseUrl = OPENAI, entries: readonly PriceEntry[] = []): string | undefined {
  return new Prices(baseUrl, entries, cataloguePrice).costOf(asked, bill).usd?.toFixed();
}

const CACHED = { prompt_tokens: 2006, completion_tokens: 300, prompt_tokens_details: { cached_tokens: 1920 } };

describe("cost", () => {
  // Prices of gpt-4o-mini: 0.15 a million prompt tokens, 0.075 where cached, 0.60 a million of completion.
  test("cached prompt tokens are billed once: 86 p + 1,920 c + 300 o", () => {
    expect(usd("gpt-4o-mini", charge(CACHED))).toBe("0.0003369");
  });

  test("plain tokens", () => {
    expect(usd("gpt-4o-mini", charge({ prompt_tokens: 1, completion_tokens: 1 }))).toBe("0.00000075");
  });

  test("reasoning tokens are part of the completion", () => {
    const usage = { prompt_tokens: 0, completion_tokens: 100, completion_tokens_details: { reasoning_tokens: 90 } };
    expect(usd("gpt-4o-mini", charge(usage))).toBe("0.00006");
  });

  test("the model that answered counts, then the one that was asked", () => {
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 0 };
    expect(usd("my-deployment", charge(usage, { answeredBy: "gpt-4o-mini-2024-07-18" }))).toBe("0.15");
    expect(usd("gpt-4o-mini", charge(usage, { answeredBy: "an-unheard-of-name" }))).toBe("0.15");
  });

  test("behind an address that the catalogue does not know, the maker's price counts", () => {
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 0 };
    expect(usd("gpt-4o-mini", charge(usage), "http://127.0.0.1:4000/v1")).toBe("0.15");
    expect(usd("openai/gpt-4o-mini", charge(usage), "http://127.0.0.1:4000/v1")).toBe("0.15");
  });

  test("a longer prompt may have another price for all of its tokens", () => {
    const of = (prompt: number) =>
      usd("claude-sonnet-4-5", charge({ prompt_tokens: prompt, completion_tokens: 0 }), "https://api.anthropic.com/v1");
    expect([of(200_000), of(200_001)]).toEqual(["0.6", "1.200006"]);
  });

  test.each(["openai", "anthropic", "google", "deepseek", "groq", "mistral", "x-ai", "perplexity", "openrouter"])(
    "every model of %s costs what the catalogue's own arithmetic says, to 1e-9",
    (id) => {
      const provider = findProvider({ providerId: id });
      const models = provider?.models ?? [];
      let compared = 0;
      for (const { id: model } of models) {
        const usage = {
          input_tokens: 123_457,
          cache_read_tokens: 1921,
          output_tokens: 307,
          output_reasoning_tokens: 101,
        };
        const expected = calcPrice(usage, model, { providerId: id });
        const url = URLS[id] ?? "";
        const found = cataloguePrice(url, model);
        if (expected === null || found === undefined || expected.model_price["input_mtok"] === undefined) continue;
        const details = {
          prompt_tokens_details: { cached_tokens: 1921 },
          completion_tokens_details: { reasoning_tokens: 101 },
        };
        const cost = new Prices(url, [], cataloguePrice).costOf(
          model,
          charge({ prompt_tokens: 123_457, completion_tokens: 307, ...details }),
        );
        expect(Math.abs(Number(cost.usd?.toString()) - expected.total_price), model).toBeLessThan(1e-9);
        compared += 1;
      }
      expect(compared).toBeGreaterThan(0);
    },
  );
});

const URLS: Readonly<Record<string, string>> = {
  openai: OPENAI,
  anthropic: "https://api.anthropic.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta/openai",
  deepseek: "https://api.deepseek.com/v1",
  groq: "https://api.groq.com/openai/v1",
  mistral: "https://api.mistral.ai/v1",
  "x-ai": "https://api.x.ai/v1",
  perplexity: "https://api.perplexity.ai",
  openrouter: "https://openrouter.ai/api/v1",
};

describe("a cost that is not measured says why, and is never 0", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 1 };
  test.each([
    [
      "a model without a price",
      "my-model",
      charge(usage),
      'the price of the model "my-model" is not known; give it by --prices FILE',
    ],
    ["an answer without usage", "gpt-4o-mini", charge(undefined), "the answer has no usage"],
    ["a null usage", "gpt-4o-mini", charge(null), "the answer has no usage"],
    [
      "counts that are missing",
      "gpt-4o-mini",
      charge({ prompt_tokens: 4 }),
      "the answer's usage has token counts that are missing or are no whole numbers",
    ],
    [
      "more cached tokens than prompt tokens",
      "gpt-4o-mini",
      charge({ ...usage, prompt_tokens_details: { cached_tokens: 5 } }),
      "the answer's usage contradicts itself: 5 cached of 1 prompt tokens",
    ],
    [
      "another service tier",
      "gpt-4o-mini",
      charge(usage, { serviceTier: "flex" }),
      'the price of the service tier "flex" is not known; give it by --prices FILE',
    ],
    [
      "audio",
      "gpt-4o-mini",
      charge({ ...usage, prompt_tokens_details: { audio_tokens: 1 } }),
      "the call has audio tokens, whose price is not known",
    ],
  ])("%s", (_, model, bill, reason) => {
    expect(new Prices(OPENAI, [], cataloguePrice).costOf(model, bill)).toEqual({ usd: undefined, reason });
  });
});
