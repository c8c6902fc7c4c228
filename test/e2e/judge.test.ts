import { readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect } from "vitest";

import type { CaseResult } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { caseOf, type Json, plain, sideInfo, tally } from "./cases.js";
import { MODEL, type ObservedProvider, openProvider, PRICES } from "./model_provider.js";
import { readMemory } from "./processes.js";
import { fixture, test } from "./scenario.js";
import { hasShared, sharedFile } from "./shared.js";
import type { SidecarOptions } from "./sidecar.js";
import { until } from "./until.js";

let provider: ObservedProvider;
beforeEach(async () => {
  provider = await openProvider();
});
afterEach(() => provider.server.close());

function judge(metric: string, ...args: string[]): SidecarOptions {
  return { metric: fixture(metric), args: [...provider.options.args, ...args], env: provider.options.env };
}

function ask(way: string, input: Json): ReturnType<typeof caseOf> {
  return caseOf(way, input);
}

describe("the judge of the contract's page", () => {
  test.runIf(hasShared())("is the one here, to the letter", () => {
    const folder = sharedFile("seeds");
    const pages = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, "utf8"));
    const source = readFileSync(fixture("judges.py"), "utf8").trim();
    expect(pages.some((page) => page.includes(source))).toBe(true);
  });

  test("judges, and what that cost is told apart from the run", async ({ start }) => {
    provider.server.script({
      rules: [{ contains: "Answer: no", steps: [{ kind: "answer", text: "fail. It is wrong.", usage: null }] }],
      otherwise: { kind: "answer", text: " pass. It is right.", usage: { prompt: 10, completion: 5 } },
    });
    const { client } = await start(judge("judges.py"));

    const results = await client.score([caseOf("yes", { question: "Is it?" }), caseOf("no", { question: "Is it?" })]);

    expect(results.map(scoreOf)).toEqual([
      [1, " pass. It is right."],
      [0, "fail. It is wrong."],
    ]);
    expect(results.map(({ metricUsage }) => metricUsage)).toMatchObject([
      { calls: 1, promptTokens: 10, completionTokens: 5 },
      { calls: 1, promptTokens: 0 },
    ]);
    expect(results[0]?.metricUsage?.costUsd).toBeCloseTo(10 * PRICES.input + 5 * PRICES.output, 12);
    expect(results[1]?.metricUsage?.costUsd).toBeUndefined();
    expect(results.map(({ observation }) => observation)).toEqual([undefined, undefined]);
    expect(provider.server.chats()[0]).toEqual({
      model: MODEL,
      messages: [
        { role: "system", content: "Answer PASS or FAIL, then give one sentence of reasons." },
        { role: "user", content: expect.stringMatching(/^Question: Is it\?\nAnswer: (yes|no)$/) as string },
      ],
    });
  });

  test("uses the reflection model where there is no other, and names both options where there is none", async ({
    start,
  }) => {
    const { env } = provider.options;
    const base = ["--model-base-url", provider.server.url];
    const reflecting = await start({
      metric: fixture("judges.py"),
      args: [...base, "--reflection-model", "gpt-4o"],
      env,
    });
    const lost = await start({ metric: fixture("judges.py"), args: base, env });
    const question = [caseOf("yes", { question: "Is it?" })];

    expect(tally(await reflecting.client.score(question))).toEqual({ SCORE: 1 });
    expect(provider.server.chats()[0]?.model).toBe("gpt-4o");
    const [result] = await lost.client.score(question);
    expect(result && plain(result)).toMatchObject({
      error: { message: expect.stringMatching(/--metric-model NAME.*--reflection-model NAME/) as string },
    });
  });
});

describe("llm()", () => {
  test("works from threads, from coroutines, and with images", async ({ start }) => {
    provider.server.script({
      rules: [0, 1, 2, 3].map((place) => ({
        contains: `number ${place}`,
        // All are asked before one is answered.
        steps: [{ kind: "answer" as const, text: `answer ${place}`, latencyMs: 200 - 40 * place }],
      })),
    });
    const { client } = await start(judge("asks_what_it_is_told.py"));

    const results = await client.score([
      ask("in_threads", { prompt: "number" }),
      ask("with_aio", { prompt: "number" }),
      ask("with_images", { prompt: "look" }),
    ]);

    const texts = [0, 1, 2, 3].map((place) => `answer ${place}`);
    expect(results.slice(0, 2).map(sideInfo)).toEqual([{ texts }, { texts }]);
    expect(results.map(({ metricUsage }) => metricUsage?.calls)).toEqual([4, 4, 1]);
    const pixel = `data:image/png;base64,${Buffer.from("89504e470d0a1a0a".padEnd(48, "0"), "hex").toString("base64")}`;
    const shown = provider.server.chats().find(({ messages }) => Array.isArray(messages?.[0]?.content));
    expect(shown?.messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          ...[pixel, "https://images.example.com/cat.png", pixel].map((url) => ({
            type: "image_url",
            image_url: { url },
          })),
        ],
      },
    ]);
  });

  test("is awaited in an async metric", async ({ start }) => {
    const { client } = await start(judge("asks_itself.py"));

    const results = await client.score([caseOf("out")]);

    const text = "PASS. It is as it should be.";
    expect(results.map(scoreOf)).toEqual([[1, `${text} ${text}`]]);
  });

  test.for([
    ["step-empty", { message: /empty/, status: 200 }],
    ["step-no-choices", { message: /has no choices/, status: 200 }],
    ["step-refusal", { message: /refused: I cannot help/, provider_message: "I cannot help with that." }],
    ["step-length", { message: /max_tokens/, finish_reason: "length", text: "PASS, since the" }],
    ["step-error-in-answer", { message: /upstream model failed/i, provider_message: "The upstream model failed" }],
    ["step-html", { message: /HTML page.*--model-base-url/ }],
    ["step-insufficient-quota", { message: /plan and billing/, status: 429 }],
  ] as const)("raises a ModelError for %s, asked once, its cost counted", async ([model, wanted], { start }) => {
    const { client } = await start(judge("asks_what_it_is_told.py"));

    const [result] = await client.score([ask("plainly", { prompt: "hello", model })]);

    const { error } = sideInfo(result) as { error: Record<string, unknown> };
    const { message, ...fields } = wanted;
    expect(error).toMatchObject({ ...fields, request_id: "req_scripted" });
    expect(error["message"]).toMatch(message);
    expect(JSON.stringify(error)).not.toContain(provider.key);
    expect(provider.server.requests).toHaveLength(1);
    // Whatever it cost, the call is counted.
    expect(result?.metricUsage?.calls).toBe(1);
  });

  test.for([
    ["in seconds", () => ({ "retry-after": "1" })],
    ["as a date", () => ({ "retry-after": new Date(Date.now() + 2000).toUTCString() })],
  ] as const)("waits as long as Retry-After says %s", async ([, headers], { start }) => {
    const { client } = await start(judge("asks_what_it_is_told.py"));
    // A sidecar that has asked before takes no time to get ready.
    await client.score([ask("plainly", { prompt: "first" })]);
    provider.server.script({ queue: [{ kind: "error", status: 429, message: "Slow down", headers: headers() }] });

    const [result] = await client.score([ask("plainly", { prompt: "second" })]);

    expect(sideInfo(result)).toMatchObject({ text: "PASS. It is as it should be." });
    expect(provider.server.requests).toHaveLength(2);
    expect(result?.timing?.metricMs).toBeGreaterThanOrEqual(900);
  });

  test("asks again after a fault that passes, and gives up in time for the metric", async ({ start }) => {
    const { client } = await start(judge("asks_what_it_is_told.py", "--metric-timeout", "3"));
    provider.server.script({
      rules: [
        {
          contains: "passes",
          steps: [{ kind: "error", status: 500, message: "down" }, { kind: "reset" }, { kind: "answer" }],
        },
        {
          contains: "stays",
          steps: [{ kind: "error", status: 429, message: "busy", headers: { "retry-after": "30" } }],
        },
      ],
    });

    const results = await client.score([ask("plainly", { prompt: "passes" }), ask("plainly", { prompt: "stays" })]);

    expect(sideInfo(results[0])).toMatchObject({ text: "PASS. It is as it should be." });
    expect(sideInfo(results[1])).toMatchObject({
      error: { status: 429, message: expect.stringMatching(/no time left to try again in 30 s/) as string },
    });
  });
});

describe("a metric killed by its timeout while a model thinks", () => {
  test("lets go of the provider's call, and the next case is served at once", async ({ start }) => {
    provider.server.script({ rules: [{ contains: "hang", steps: [{ kind: "hang" }] }] });
    const { client } = await start(judge("asks_what_it_is_told.py", "--metric-timeout", "1", "--workers", "1"));
    const open = client.openScore();
    const next = open.score([ask("plainly", { prompt: "hang" }), ask("plainly", { prompt: "next" })]);

    await provider.server.until(({ requests }) => requests.some(({ isAborted }) => isAborted));
    const abortedAt = performance.now();
    const results = await next;
    const waitedMs = performance.now() - abortedAt;

    expect(tally(results)).toEqual({ METRIC_TIMEOUT: 1, SCORE: 1 });
    // Far less than the second that the killed one has to clean up.
    expect(waitedMs).toBeLessThan(900);
    expect(results[0]?.metricUsage).toMatchObject({ calls: 1 });
    expect(results[0]?.metricUsage?.costUsd).toBeUndefined();
    await open.end();
  });
});

describe("--max-cost", () => {
  test("stops model calls once it is spent, says so, and tells what was spent", async ({ start }) => {
    provider.server.script({ otherwise: { kind: "answer", usage: { prompt: 1_000_000, completion: 0 } } });
    const { client } = await start(judge("asks_what_it_is_told.py", "--max-cost", "0.4", "--workers", "1"));

    const results = await client.score(Array.from({ length: 5 }, () => ask("plainly", { prompt: "hello" })));

    const said = results.map((result) => (sideInfo(result)["error"] as { message: string } | undefined)?.message);
    expect(said).toEqual([
      undefined,
      undefined,
      undefined,
      ...Array<unknown>(2).fill(expect.stringMatching(/\$0\.45 of \$0\.4 is spent; raise --max-cost/)),
    ]);
    expect(provider.server.requests).toHaveLength(3);
    expect(await client.describeMetric()).toMatchObject({
      maxCostUsd: 0.4,
      metricUsage: { calls: 3, costUsd: expect.closeTo(0.45, 9) as number },
    });
  });
});

describe.runIf(process.platform === "linux")("the provider's key", () => {
  test("is in no Python process: not in its environment, arguments or memory", async ({ start }) => {
    const sidecar = await start(judge("asks_what_it_is_told.py", "--workers", "2"));
    provider.server.script({
      // Some providers repeat the key in what they say.
      otherwise: { kind: "error", status: 401, message: `Incorrect API key provided: ${provider.key}` },
    });
    const [result] = await sidecar.client.score([ask("plainly", { prompt: "a prompt that it must know 4711" })]);
    expect(sideInfo(result)).toMatchObject({ error: { status: 401 } });

    const processes = sidecar.processes().filter(({ pid }) => pid !== sidecar.pid);
    const workers = sidecar.workers();
    expect(workers.length).toBeGreaterThanOrEqual(2);
    const read = processes.map(({ pid }) => [
      readFileSync(`/proc/${pid}/environ`, "latin1"),
      readFileSync(`/proc/${pid}/cmdline`, "latin1"),
      ...readMemory(pid),
    ]);

    const has = (text: string): number => read.flat().filter((part) => part.includes(text)).length;
    expect(has("a prompt that it must know 4711")).toBeGreaterThan(0);
    expect(has(provider.key)).toBe(0);
    expect(readFileSync(`/proc/${sidecar.pid}/environ`, "latin1")).not.toContain(provider.key);
    expect(JSON.stringify(sidecar.log)).not.toContain(provider.key);
    await until("the sidecar serves on", async () => (await sidecar.client.health()) === "SERVING");
  });
});

function scoreOf({ outcome }: CaseResult): unknown {
  return outcome.case === "score" ? [outcome.value.value, outcome.value.feedback] : outcome.value;
}
