import { afterEach, beforeEach, describe, expect } from "vitest";

import { caseOf, json, sideInfo, tally } from "./cases.js";
import { type ObservedProvider, openProvider } from "./model_provider.js";
import { observationOf, runOf, TOLD_RUNS } from "./run_cases.js";
import { fixture, test } from "./scenario.js";

/** Bugs of other projects that must not be ours, each for its whole kind: those that have to do with models. */
let provider: ObservedProvider;
beforeEach(async () => {
  provider = await openProvider();
});
afterEach(() => provider.server.close());

describe("BerriAI/litellm 6215: cached prompt tokens were billed twice", () => {
  const usage = { prompt: 2006, cached: 1920, completion: 300 };
  const PRICES = { prompt: 0.15e-6, cached: 0.075e-6, completion: 0.6e-6 };
  const usd = 86 * PRICES.prompt + 1920 * PRICES.cached + 300 * PRICES.completion;

  test("a judge's call costs 86 p + 1,920 c + 300 o", async ({ start }) => {
    provider.server.script({ otherwise: { kind: "answer", usage } });
    const { client } = await start({ metric: fixture("asks_what_it_is_told.py"), ...provider.options });

    const [result] = await client.score([caseOf("plainly", { prompt: "hello" })]);

    expect(sideInfo(result)).toMatchObject({
      cost_usd: expect.closeTo(usd, 12) as number,
      usage: { prompt_tokens: 2006, cached_prompt_tokens: 1920, completion_tokens: 300 },
    });
    expect(result?.metricUsage?.costUsd).toBeCloseTo(usd, 12);
  });

  test.for([false, true])(
    "a run's call too (streamed: %s), and so does the sum of several",
    async (stream, { start }) => {
      provider.server.script({ otherwise: { kind: "answer", usage } });
      const { args, env } = provider.options;
      const { client } = await start({
        metric: fixture("tells_what_was_measured.py"),
        args: [...TOLD_RUNS, ...args],
        env,
      });
      const code = (calls: number) => `import json, os, urllib.request
body = json.dumps({"model": "gpt-4o-mini", "stream": ${stream ? "True" : "False"}, "messages": [{"role": "user", "content": "hello"}]}).encode()
headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
for _ in range(${calls}):
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)).read()
output = 1`;

      const results = await client.score([runOf(code(1)), runOf(code(3))], { artifact: json("") });

      expect(results.map(observationOf)).toMatchObject([
        { costUsd: expect.closeTo(usd, 12) as number, usage: { calls: 1, cachedPromptTokens: 1920 } },
        { costUsd: expect.closeTo(3 * usd, 12) as number, usage: { calls: 3, cachedPromptTokens: 3 * 1920 } },
      ]);
      expect((await client.describeMetric()).gatewayUsage?.costUsd).toBeCloseTo(4 * usd, 12);
    },
  );

  test("what a provider counts as more cached tokens than there are is not measured", async ({ start }) => {
    provider.server.script({ otherwise: { kind: "answer", usage: { prompt: 10, cached: 11, completion: 1 } } });
    const { client } = await start({ metric: fixture("asks_what_it_is_told.py"), ...provider.options });

    const [result] = await client.score([caseOf("plainly", { prompt: "hello" })]);

    expect(sideInfo(result)).toMatchObject({
      cost_usd: null,
      cost_not_known_reason: "the answer's usage contradicts itself: 11 cached of 10 prompt tokens",
    });
  });
});

describe("sierra-research/tau2-bench 166: reasoning models answered 400 to temperature", () => {
  test("nothing is sent that the user did not set", async ({ start }) => {
    const { client } = await start({ metric: fixture("asks_what_it_is_told.py"), ...provider.options });

    const results = await client.score([
      caseOf("plainly", { prompt: "hello" }),
      caseOf("plainly", { prompt: "set", temperature: 0, max_tokens: 9, response_format: { type: "json_object" } }),
    ]);

    expect(tally(results)).toEqual({ SCORE: 2 });
    const bodies = provider.server.chats();
    const sent = (content: string) => bodies.find(({ messages }) => messages?.[0]?.content === content);
    expect(Object.keys(sent("hello") ?? {}).sort()).toEqual(["messages", "model"]);
    expect(sent("set")).toMatchObject({ temperature: 0, max_tokens: 9, response_format: { type: "json_object" } });
  });

  test.for(["temperature", "max_tokens", "response_format"] as const)(
    "%s, which the model refuses by name, is dropped once and remembered for that model",
    async (parameter, { start }) => {
      const refuses = { kind: "refuse_parameter" as const, parameter };
      provider.server.script({ rules: [{ model: "o3-mini", steps: [refuses] }] });
      const sidecar = await start({
        metric: fixture("asks_what_it_is_told.py"),
        args: [...provider.options.args, "--workers", "1"],
        env: provider.options.env,
      });
      const set = { temperature: 0.5, max_tokens: 9, response_format: { type: "json_object" } };
      const ask = (model: string) => caseOf("plainly", { prompt: "hello", model, ...set });

      const results = await sidecar.client.score([ask("o3-mini"), ask("o3-mini"), ask("gpt-4o-mini")]);

      expect(results.map((result) => sideInfo(result)["text"])).toEqual(Array(3).fill("PASS. It is as it should be."));
      const had = provider.server.chats().map((chat) => [chat.model, parameter in chat]);
      expect(had).toEqual([
        ["o3-mini", true],
        ["o3-mini", false],
        ["o3-mini", false],
        ["gpt-4o-mini", true],
      ]);
      // Nothing else was dropped with it, and the user is told.
      const others = Object.keys(set).filter((name) => name !== parameter);
      for (const chat of provider.server.chats()) for (const name of others) expect(chat).toHaveProperty(name);
      await sidecar.logged("what was left out", ({ msg }) => msg.includes(`does not support ${parameter}`));
    },
  );

  test("a value that is wrong is the metric's to mend, and dropped for nobody", async ({ start }) => {
    const refusal = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.";
    provider.server.script({
      otherwise: {
        kind: "error",
        status: 400,
        message: refusal,
        code: "decimal_above_max_value",
        param: "temperature",
      },
    });
    const { client } = await start({ metric: fixture("asks_what_it_is_told.py"), ...provider.options });

    const [result] = await client.score([caseOf("plainly", { prompt: "hello", temperature: 3 })]);

    expect(sideInfo(result)).toMatchObject({ error: { status: 400, provider_message: refusal } });
    expect(provider.server.requests).toHaveLength(1);
  });
});
