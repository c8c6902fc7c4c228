import { Big } from "big.js";
import { describe, expect, test } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { NO_TOKENS } from "../../src/model/token_usage.js";

const call = (usd: string) => ({
  usage: { ...NO_TOKENS, promptTokens: 10, cachedPromptTokens: 4 },
  cost: { usd: new Big(usd) },
});
const unknown = { usage: undefined, cost: { usd: undefined, reason: "the answer has no usage" } };

describe("a meter", () => {
  test("adds up exactly, for itself and for the whole", () => {
    const whole = new Meter();
    const [first, second] = [new Meter(whole), new Meter(whole)];
    first.record(call("0.1"));
    first.record(call("0.2"));
    second.record(call("0.7"));
    expect(first.usage()).toMatchObject({ calls: 2, promptTokens: 20, cachedPromptTokens: 8, callsOfUnknownCost: 0 });
    expect(first.usage().cost.usd?.toFixed()).toBe("0.3");
    expect(whole.usage().cost.usd?.toFixed()).toBe("1");
  });

  test("without calls has cost nothing", () => {
    expect(new Meter().usage()).toMatchObject({ calls: 0 });
    expect(new Meter().usage().cost.usd?.toFixed()).toBe("0");
  });

  test("knows no cost once one call's is not known, and says of how many", () => {
    const meter = new Meter();
    meter.record(unknown);
    expect(meter.usage().cost).toEqual(unknown.cost);
    meter.record(call("0.5"));
    meter.record(unknown);
    const { cost, knownUsd, callsOfUnknownCost } = meter.usage();
    expect(cost).toEqual({ usd: undefined, reason: "2 of 3 model calls: the answer has no usage" });
    expect([knownUsd.toFixed(), callsOfUnknownCost]).toEqual(["0.5", 2]);
  });
});
