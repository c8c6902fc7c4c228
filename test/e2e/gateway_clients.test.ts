import OpenAI from "openai";
import { beforeEach, describe, expect } from "vitest";

import { hasPythonClients, PYTHON } from "../python_clients.js";
import { json, tally } from "./cases.js";
import type { OpenObserve } from "./client.js";
import { runProgram } from "./command.js";
import { MODEL, type ObservedProvider, openProvider, PRICES } from "./model_provider.js";
import { observationOf, outputOf } from "./run_cases.js";
import { fixture, test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { fileURLToPath } from "node:url";

const ASKS = fileURLToPath(new URL("../fixtures/clients/asks.py", import.meta.url));
const TEXT = "PASS. It is as it should be.";
/** What each answer uses, and what that costs. */
const USAGE = { prompt: 1000, cached: 400, completion: 50 };
const CALL_USD = 600 * PRICES.input + 400 * PRICES.cached + 50 * PRICES.output;

let provider: ObservedProvider;
beforeEach(async () => {
  provider = await openProvider({ otherwise: { kind: "answer", text: TEXT, usage: USAGE } });
  return () => provider.server.close();
});

/** A run that the engine does: what it needs to reach models, and what was measured of it. */
async function observed(
  sidecar: Sidecar,
  use: (gateway: { readonly url: string; readonly token: string }) => Promise<void>,
): Promise<{ calls: number; costUsd: number | undefined }> {
  const engine: OpenObserve = sidecar.client.observe();
  const { observationId, gatewayToken } = await engine.begin();
  await use({ url: `http://${sidecar.address}/v1`, token: gatewayToken });
  const { usage, costUsd } = await engine.finish(observationId);
  await engine.end();
  return { calls: usage?.calls ?? 0, costUsd };
}

function measured(calls: number): object {
  return { calls, costUsd: expect.closeTo(calls * CALL_USD, 9) as number };
}

describe("the openai client for Node", () => {
  test("asks, streams and lists models", async ({ start }) => {
    const sidecar = await start({ metric: fixture("exact_match.py"), ...provider.options });

    const cost = await observed(sidecar, async ({ url, token }) => {
      const client = new OpenAI({ baseURL: url, apiKey: token });
      const question = { model: MODEL, messages: [{ role: "user" as const, content: "hello" }] };
      const plain = await client.chat.completions.create(question);
      expect(plain.choices[0]?.message.content).toBe(TEXT);
      const chunks = [];
      for await (const chunk of await client.chat.completions.create({ ...question, stream: true })) chunks.push(chunk);
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(TEXT);
      // The gateway asked for the usage; this client did not, and does not get to see it.
      expect(chunks.filter(({ usage }) => usage !== undefined && usage !== null)).toEqual([]);
      const listed = await client.models.list();
      expect(listed.data.map(({ id }) => id)).toEqual([MODEL]);
      const stranger = new OpenAI({ baseURL: url, apiKey: "sk-of-nobody", maxRetries: 0 });
      await expect(stranger.chat.completions.create(question)).rejects.toThrow(OpenAI.AuthenticationError);
    });

    expect(cost).toEqual(measured(2));
    expect(provider.server.chats().map((chat) => chat.stream_options)).toEqual([undefined, { include_usage: true }]);
    // The provider saw the sidecar's key, and never a run's token.
    expect(new Set(provider.server.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${provider.key}`]),
    );
  });
});

describe("curl", () => {
  const body = (stream: boolean): string =>
    JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hello" }], stream });

  test("asks, streams and lists models", async ({ start }) => {
    const sidecar = await start({ metric: fixture("exact_match.py"), ...provider.options });

    const cost = await observed(sidecar, async ({ url, token }) => {
      const curl = async (path: string, ...args: string[]): Promise<string> => {
        const headers = ["-H", `authorization: Bearer ${token}`, "-H", "content-type: application/json"];
        return (await runProgram("curl", ["-sS", "-N", ...headers, ...args, `${url}/${path}`])).stdout;
      };
      expect(JSON.parse(await curl("chat/completions", "-d", body(false)))).toMatchObject({
        choices: [{ message: { content: TEXT } }],
        usage: { prompt_tokens: USAGE.prompt },
      });
      const events = await curl("chat/completions", "-d", body(true));
      expect(events).toMatch(/^data: \{.*\n\n.*\ndata: \[DONE\]\n\n$/s);
      expect(events).not.toContain('"prompt_tokens"');
      expect(JSON.parse(await curl("models"))).toMatchObject({ object: "list", data: [{ id: MODEL }] });
    });

    expect(cost).toEqual(measured(2));
  });

  test("is told what is wrong with a token, in the provider's format", async ({ start }) => {
    const sidecar = await start({ metric: fixture("exact_match.py"), ...provider.options });
    let finished = { url: "", token: "" };
    await observed(sidecar, (gateway) => {
      finished = gateway;
      return Promise.resolve();
    });

    for (const token of ["sk-of-nobody", finished.token, ""]) {
      for (const args of [
        ["-d", body(false)],
        ["-d", body(true)],
      ]) {
        const header = ["-H", `authorization: Bearer ${token}`, "-w", "\n%{http_code}"];
        const { stdout } = await runProgram("curl", ["-sS", ...header, ...args, `${finished.url}/chat/completions`]);
        const [answer = "", status] = stdout.split("\n");
        expect(status).toBe("401");
        expect(JSON.parse(answer)).toEqual({
          error: {
            message: expect.stringContaining("not the token of a run that is going on") as string,
            type: "invalid_request_error",
            param: null,
            code: "invalid_api_key",
          },
        });
      }
    }
    expect(provider.server.requests).toEqual([]);
  });
});

describe.runIf(hasPythonClients())("Python clients", () => {
  /** litellm would fetch prices from the internet while it is imported. */
  const OFFLINE = { LITELLM_LOCAL_MODEL_COST_MAP: "True" };
  const ANSWERS = {
    openai: [{ plain: TEXT, streamed: TEXT, models: [MODEL] }, 2],
    openai_async: [{ plain: TEXT, streamed: TEXT, usages: [USAGE.prompt] }, 2],
    litellm: [{ plain: TEXT, streamed: TEXT }, 2],
    dspy: [{ plain: TEXT }, 1],
  } as const;

  test.for(["openai", "openai_async", "litellm", "dspy"] as const)("%s asks and streams", async (name, { start }) => {
    const sidecar = await start({ metric: fixture("exact_match.py"), ...provider.options });
    const [answers, calls] = ANSWERS[name];

    const cost = await observed(sidecar, async ({ url, token }) => {
      const env = { ...OFFLINE, OPENAI_BASE_URL: url, OPENAI_API_BASE: url, OPENAI_API_KEY: token };
      const { code, stdout, stderr } = await runProgram(PYTHON, [ASKS, name], { env });
      expect(code, stderr).toBe(0);
      const told = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as { refused: [string, string] };
      expect(told).toMatchObject(answers);
      const [type, message] = told.refused;
      expect(type).toMatch(/Auth\w*Error$/);
      expect(message).toContain("not the token of a run that is going on");
    });

    expect(cost).toEqual(measured(calls));
  });

  test("work in run code, which finds where and who it is in its environment", async ({ start }) => {
    const { options } = provider;
    const args = [...options.args, "--run", ASKS, "--python", PYTHON];
    const { client } = await start({
      metric: fixture("tells_what_it_got.py"),
      args,
      env: { ...options.env, ...OFFLINE },
    });
    const names = ["openai", "litellm"] as const;

    const results = await client.score(
      names.map((name) => ({ input: json({ client: name }) })),
      { artifact: json(MODEL) },
    );

    expect(tally(results)).toEqual({ SCORE: names.length });
    expect(results.map(outputOf)).toEqual(names.map((name) => ANSWERS[name][0]));
    expect(results.map(observationOf).map(({ usage, costUsd }) => ({ calls: usage?.calls, costUsd }))).toEqual(
      names.map((name) => measured(ANSWERS[name][1])),
    );
  });
});
