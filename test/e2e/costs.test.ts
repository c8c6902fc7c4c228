import { calcPrice } from "@pydantic/genai-prices";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect } from "vitest";

import { caseOf, json, sideInfo, tally } from "./cases.js";
import { type ObservedProvider, openProvider } from "./model_provider.js";
import { observationOf, runOf, TOLD_RUNS } from "./run_cases.js";
import { fixture, test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";

/** Price lists as their providers publish them, in US dollars a million tokens. */
const PRICES = {
  "gpt-4o-mini": { input: 0.15, cached: 0.075, output: 0.6 },
  "gpt-4o": { input: 2.5, cached: 1.25, output: 10 },
  "gpt-4.1": { input: 2, cached: 0.5, output: 8 },
  "o3-mini": { input: 1.1, cached: 0.55, output: 4.4 },
} as const;
type Model = keyof typeof PRICES;

const USAGES = [
  { prompt: 12_345, completion: 678 },
  { prompt: 2006, cached: 1920, completion: 300 },
  { prompt: 1, completion: 1 },
  { prompt: 90_001, cached: 33, completion: 4567, reasoning: 4000 },
] as const;
type Usage = (typeof USAGES)[number] & { readonly cached?: number };

let provider: ObservedProvider;
beforeEach(async () => {
  provider = await openProvider();
});
afterEach(() => provider.server.close());

function priceOf(model: Model, { prompt, cached = 0, completion }: Usage): number {
  const { input, cached: rate, output } = PRICES[model];
  return ((prompt - cached) * input + cached * rate + completion * output) / 1e6;
}

/** Answers each question, which is a number, with the usage of that place. */
function scriptUsages(model: string): void {
  const rules = USAGES.map((usage, place) => ({
    contains: `usage ${place}`,
    steps: [{ kind: "answer" as const, usage, model }],
  }));
  provider.server.script({ rules, otherwise: { kind: "answer", usage: null } });
}

async function observedCost(
  sidecar: Sidecar,
  use: (openai: OpenAI) => Promise<unknown>,
): Promise<{ costUsd: number | undefined; reason: string; calls: number | undefined }> {
  const engine = sidecar.client.observe();
  const { observationId, gatewayToken } = await engine.begin();
  await use(new OpenAI({ baseURL: `http://${sidecar.address}/v1`, apiKey: gatewayToken, maxRetries: 0 }));
  const { costUsd, costNotMeasuredReason: reason, usage } = await engine.finish(observationId);
  await engine.end();
  return { costUsd, reason, calls: usage?.calls };
}

async function ask(openai: OpenAI, model: string, content: string, isStream: boolean): Promise<void> {
  const question = { model, messages: [{ role: "user" as const, content }] };
  if (!isStream) {
    await openai.chat.completions.create(question);
    return;
  }
  let chunks = 0;
  for await (const chunk of await openai.chat.completions.create({ ...question, stream: true })) {
    chunks += chunk.choices.length;
  }
  expect(chunks).toBeGreaterThan(1);
}

describe.each(Object.keys(PRICES) as Model[])("a call to %s", (model) => {
  test("costs what the provider's price list says, whole and streamed, through the gateway", async ({ start }) => {
    scriptUsages(model);
    const sidecar = await start({ metric: fixture("exact_match.py"), ...provider.options });

    for (const isStream of [false, true]) {
      for (const [place, usage] of USAGES.entries()) {
        const found = await observedCost(sidecar, (openai) => ask(openai, model, `usage ${place}`, isStream));
        expect(Math.abs((found.costUsd ?? NaN) - priceOf(model, usage))).toBeLessThan(1e-9);
        expect(found).toMatchObject({ calls: 1, reason: "" });
        const input_tokens = usage.prompt;
        const cache_read_tokens = "cached" in usage ? usage.cached : 0;
        const listed = calcPrice({ input_tokens, cache_read_tokens, output_tokens: usage.completion }, model, {
          providerId: "openai",
        });
        expect(Math.abs((found.costUsd ?? NaN) - (listed?.total_price ?? NaN))).toBeLessThan(1e-9);
      }
    }
    const all = await observedCost(sidecar, (openai) =>
      Promise.all(
        USAGES.flatMap((_, place) => [false, true].map((stream) => ask(openai, model, `usage ${place}`, stream))),
      ),
    );
    const sum = USAGES.reduce((usd, usage) => usd + 2 * priceOf(model, usage), 0);
    expect(Math.abs((all.costUsd ?? NaN) - sum)).toBeLessThan(1e-9);
  });
});

describe("a judge's calls", () => {
  test("cost what the provider's price list says", async ({ start }) => {
    scriptUsages("gpt-4o-mini");
    const { args, env } = provider.options;
    const sidecar = await start({ metric: fixture("asks_what_it_is_told.py"), args, env });

    const results = await sidecar.client.score(
      USAGES.map((_, place) => caseOf("plainly", { prompt: `usage ${place}` })),
    );

    const wanted = USAGES.map((usage) => priceOf("gpt-4o-mini", usage));
    results.forEach((result, place) => {
      const told = sideInfo(result)["cost_usd"] as number;
      for (const usd of [told, result.metricUsage?.costUsd ?? NaN]) {
        expect(Math.abs(usd - (wanted[place] ?? NaN))).toBeLessThan(1e-9);
      }
    });
    const spent = (await sidecar.client.describeMetric()).metricUsage?.costUsd ?? NaN;
    expect(Math.abs(spent - wanted.reduce((sum, usd) => sum + usd))).toBeLessThan(1e-9);
  });
});

describe("a cost that is not known", () => {
  test("is not measured, never 0, and says why", async ({ start, workspace }) => {
    const prices = { prices: [{ model: "own-*", input: 1, cached_input: 0.1, output: 3 }] };
    const args = [...provider.options.args, "--prices", workspace.write("prices.json", JSON.stringify(prices))];
    const sidecar = await start({ metric: fixture("exact_match.py"), args, env: provider.options.env });
    const cost = (model: string, isStream: boolean) =>
      observedCost(sidecar, (openai) => ask(openai, model, "usage 1", isStream).catch(() => undefined));

    for (const isStream of [false, true]) {
      scriptUsages("nobody-s-model");
      expect(await cost("nobody-s-model", isStream)).toEqual({
        costUsd: undefined,
        reason: 'the price of the model "nobody-s-model" is not known; give it by --prices FILE',
        calls: 1,
      });
      // The user's own price.
      const own = await cost("own-model", isStream);
      expect(Math.abs((own.costUsd ?? NaN) - (86 * 1 + 1920 * 0.1 + 300 * 3) / 1e6)).toBeLessThan(1e-9);
      // An answer without usage, and one that breaks off.
      expect(await cost("step-no-usage", isStream)).toMatchObject({
        costUsd: undefined,
        reason: expect.stringMatching(/usage/) as string,
      });
      expect(await cost("step-cut", isStream)).toMatchObject({ costUsd: undefined, calls: 1 });
      // A refusal is free.
      expect(await cost("step-insufficient-quota", isStream)).toMatchObject({ costUsd: 0 });
    }
  });

  test("takes the cost out of a run's sum, and its part out of the reward, which says so", async ({
    start,
    workspace,
  }) => {
    provider.server.script({ otherwise: { kind: "answer", usage: { prompt: 10_000, completion: 0 } } });
    const metric = workspace.write(
      "metric.py",
      `from skynet import reward
REWARD_SPEC = {
    "weights": {"accuracy": 0.5, "speed": 0, "cost": 0.5},
    "accuracy": {},
    "speed": {"reference": 60000},
    "cost": {"reference": 0.00075},
}
def score(input, output, expected=None):
    return reward(REWARD_SPEC, 1.0, "Fine.")
`,
    );
    const { args, env } = provider.options;
    const { client } = await start({ metric, args: [...TOLD_RUNS, ...args], env });
    const call = (model: string) => `import json, os, urllib.request
def call(model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]}).encode()
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)).read()
call("gpt-4o-mini")
call(${JSON.stringify(model)})
output = 1`;

    const results = await client.score([runOf(call("gpt-4o-mini")), runOf(call("nobody-s-model"))], {
      artifact: json(""),
    });

    expect(tally(results)).toEqual({ SCORE: 2 });
    const [known, unknown] = results;
    expect(Math.abs((observationOf(known).costUsd ?? NaN) - 0.003)).toBeLessThan(1e-9);
    // Twice 0.0015, four times the reference.
    expect(known?.outcome).toMatchObject({ value: { value: expect.closeTo(0.5 + 0.5 * 0.25, 9) as number } });
    expect(observationOf(unknown)).toMatchObject({
      costNotMeasuredReason: expect.stringContaining("nobody-s-model") as string,
      usage: { calls: 2 },
    });
    expect(observationOf(unknown).costUsd).toBeUndefined();
    expect(unknown?.outcome).toMatchObject({
      value: { value: 0.5, scores: { cost: 0 }, feedback: expect.stringMatching(/cost.*nobody-s-model/i) as string },
    });
  });
});
