import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";

import { priceOf, readPriceFile } from "../../src/model/price_file.js";
import { cataloguePrice } from "../../src/model/price_catalogue.js";
import { Prices } from "../../src/model/prices.js";
import { readUsage } from "../../src/model/token_usage.js";

const folder = mkdtempSync(join(tmpdir(), "skynet-prices-"));
afterAll(() => rmSync(folder, { recursive: true }));

function written(content: unknown): string {
  const path = join(folder, "prices.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const JUDGE = { model: "my-judge*", provider: "llm.example.com", input: 0.1, cached_input: 0.01, output: 0.4 };

describe("a prices file", () => {
  test("adds a price, by model and provider", () => {
    const entries = readPriceFile(written({ prices: [JUDGE] }));
    expect(priceOf(entries, "llm.example.com", "My-Judge-2")?.input.base.toFixed()).toBe("0.1");
    expect(priceOf(entries, "other.example.com", "my-judge-2")).toBeUndefined();
    expect(priceOf(entries, "llm.example.com", "not-my-judge")).toBeUndefined();
  });

  test("only * is special in a name", () => {
    const entries = readPriceFile(written({ prices: [{ model: "a.b", input: 1, output: 1 }] }));
    expect([priceOf(entries, "h", "a.b") === undefined, priceOf(entries, "h", "axb") === undefined]).toEqual([
      false,
      true,
    ]);
  });

  test("comes before the catalogue; cached tokens cost as others where it does not say; a price of 0 is one", () => {
    const usage = readUsage({
      prompt_tokens: 100,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 50 },
    });
    const charge = { usage, answeredBy: "gpt-4o-mini-2024-07-18", serviceTier: undefined };
    const cost = (entry: object) => {
      const entries = readPriceFile(written({ prices: [{ model: "gpt-4o-mini", ...entry }] }));
      return new Prices("https://api.openai.com/v1", entries, cataloguePrice)
        .costOf("gpt-4o-mini", charge)
        .usd?.toFixed();
    };
    expect(cost({ input: 1, output: 2 })).toBe("0.00012");
    expect(cost({ input: 1, cached_input: 0.5, output: 2 })).toBe("0.000095");
    expect(cost({ input: 0, output: 0 })).toBe("0");
  });

  test("the first entry that fits counts", () => {
    const prices = [
      { ...JUDGE, input: 7 },
      { ...JUDGE, model: "*", input: 8 },
    ];
    expect(priceOf(readPriceFile(written({ prices })), "llm.example.com", "my-judge")?.input.base.toNumber()).toBe(7);
  });

  test("may begin with a byte order mark", () => {
    expect(readPriceFile(written('\uFEFF{"prices": []}'))).toEqual([]);
  });

  test.each([
    ["no JSON", "{", /^the prices in \S+prices\.json are not JSON: /],
    ["a list", [], /prices\.json cannot be used: the file: /],
    [
      "a negative price",
      { prices: [{ ...JUDGE, input: -1 }] },
      /prices\.json cannot be used: prices\[0\]\.input: .*>=0/,
    ],
    [
      "a price as text",
      { prices: [{ ...JUDGE, output: "1" }] },
      /cannot be used: prices\[0\]\.output: .*expected number/,
    ],
    ["a missing price", { prices: [JUDGE, { model: "a", input: 1 }] }, /cannot be used: prices\[1\]\.output: /],
    ["an unknown key", { prices: [{ ...JUDGE, inptu: 1 }] }, /cannot be used: prices\[0\]: .*"inptu"/],
    ["an empty name", { prices: [{ ...JUDGE, model: "" }] }, /cannot be used: prices\[0\]\.model: /],
  ])("is refused with its name and the key: %s", (_, content, message) => {
    expect(() => readPriceFile(written(content))).toThrow(message);
  });

  test("that is not there is an error that names it", () => {
    expect(() => readPriceFile(join(folder, "missing.json"))).toThrow(
      /^the prices cannot be read: ENOENT.*missing\.json/,
    );
  });
});
