import { Big } from "big.js";
import { once } from "node:events";
import { createServer, request as httpRequest, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import OpenAI, { APIError, APIUserAbortError, AuthenticationError } from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { Models, ModelOptions } from "../../src/model/open_models.js";
import type { OpenObservation } from "../../src/scoring/observations.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { completionEvents } from "../model_server/completion.js";
import { ModelServer } from "../model_server/server.js";
import { start } from "./clients.js";
import { FakeScorer } from "./fake_scorer.js";
import { type LogLine, memoryLog } from "./memory_log.js";
import { PROVIDER_KEY, testModels } from "./test_models.js";

const CHAT = { model: "gpt-4o-mini", messages: [{ role: "user" as const, content: "hello" }] };
const USAGE = { prompt: 2006, cached: 1920, completion: 300 };
/** 86 × $0.15 + 1,920 × $0.075 + 300 × $0.60, a million. */
const PRICE = new Big("0.0003369");

let provider: ModelServer;
let scorer: FakeScorer;
let models: Models;
let sidecar: Sidecar;
let log: LogLine[];
let run: OpenObservation;

beforeEach(async () => {
  provider = new ModelServer({ otherwise: { kind: "answer", text: "PASS, all of it.", usage: USAGE } });
  await provider.listen();
  await serve();
});

afterEach(async () => {
  await stop();
  await provider.close();
});

async function serve(options: Partial<ModelOptions> = {}, maxMessageBytes = 1_000_000): Promise<void> {
  scorer = new FakeScorer();
  log = [];
  models = testModels(options.baseUrl ?? provider.url, options);
  sidecar = await start({ scorer, models, servesRuns: true, maxMessageBytes, log: memoryLog(log) });
  run = scorer.observations.begin("a run", scorer);
}

async function stop(): Promise<void> {
  await sidecar.close({ drainTimeoutMs: 0 });
  await models.close();
}

function gatewayUrl(): string {
  return `http://${sidecar.addresses[0] ?? ""}/v1`;
}

/** The client as run code makes it: unmodified, but for its retries. */
function client(baseURL = gatewayUrl(), apiKey = run.token): OpenAI {
  return new OpenAI({ apiKey, baseURL, maxRetries: 0 });
}

function post(body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${gatewayUrl()}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${run.token}`, ...headers },
    body,
  });
}

/** What was measured of the run. */
function measured() {
  return scorer.observations.end(run.id).usage;
}

async function errorOf(call: Promise<unknown>): Promise<APIError> {
  const reason: unknown = await call.catch((error: unknown) => error);
  return reason instanceof APIError ? reason : expect.fail(`it should have failed, and gave ${JSON.stringify(reason)}`);
}

describe("the unmodified openai client", () => {
  test.each(["the sidecar's port", "the port for runs"])(
    "gets completions on %s, and the run is billed",
    async (port) => {
      const url = port === "the sidecar's port" ? gatewayUrl() : sidecar.runGatewayUrl;
      const completion = await client(url).chat.completions.create(CHAT);
      expect(completion.choices[0]?.message.content).toBe("PASS, all of it.");
      expect(completion.usage?.prompt_tokens).toBe(2006);
      expect(measured()).toMatchObject({
        calls: 1,
        promptTokens: 2006,
        cachedPromptTokens: 1920,
        completionTokens: 300,
        cost: { usd: PRICE },
      });
      expect(scorer.gatewayMeter.usage().calls).toBe(1);
    },
  );

  test("gets a stream as it would from the provider, without the usage that it did not ask for; the run is billed", async () => {
    const stream = await client().chat.completions.create({ ...CHAT, stream: true });
    let text = "";
    for await (const chunk of stream) {
      expect(chunk.choices).toHaveLength(1);
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe("PASS, all of it.");
    expect(provider.chats()[0]).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    expect(measured()).toMatchObject({ calls: 1, promptTokens: 2006, cost: { usd: PRICE } });
  });

  test("gets the usage of a stream where it asked for it", async () => {
    const options = { stream: true, stream_options: { include_usage: true } } as const;
    const usages = [];
    for await (const chunk of await client().chat.completions.create({ ...CHAT, ...options })) {
      if (chunk.choices.length === 0) usages.push(chunk.usage?.prompt_tokens);
    }
    expect(usages).toEqual([2006]);
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: PRICE } });
  });

  test("gets the provider's list of models, which costs nothing", async () => {
    const page = await client().models.list();
    expect(page.data.map(({ id }) => id)).toEqual(["gpt-4o-mini"]);
    expect(measured().calls).toBe(0);
  });

  test("sends what it sends: the body passes byte for byte, and nothing is added where it does not stream", async () => {
    const body =
      '{"model":"gpt-4o-mini", "messages":[{"role":"user","content":"1e400 \\u2028 🙂"}],"seed":9007199254740993}';
    await (await post(body)).text();
    expect(provider.requests[0]?.body).toBe(body);
  });

  test("keeps its connection", async () => {
    const own = client();
    for (let call = 0; call < 5; call++) await own.chat.completions.create(CHAT);
    expect(provider.connections).toBe(1);
  });
});

describe("a key that is not the token of an open observation", () => {
  test.each(["none", "wrong", "finished", "the provider's own"])(
    "%s gets 401 in the provider's format",
    async (which) => {
      const { token } = run;
      if (which === "finished") measured();
      const key =
        { none: "", wrong: "sk-skynet-wrong", finished: token, "the provider's own": PROVIDER_KEY }[which] ?? "";
      const error = await errorOf(client(gatewayUrl(), key === "" ? " " : key).chat.completions.create(CHAT));
      expect(error).toBeInstanceOf(AuthenticationError);
      expect(error).toMatchObject({ status: 401, code: "invalid_api_key", type: "invalid_request_error" });
      expect(error.message).toContain("the key is not the token of a run that is going on");
      expect(provider.requests).toHaveLength(0);
    },
  );

  test("is told so whatever the path, and with a large body", async () => {
    const response = await post(JSON.stringify({ ...CHAT, user: "x".repeat(900_000) }), { authorization: "Bearer no" });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_api_key", param: null } });
    expect((await fetch(`${gatewayUrl()}/embeddings`, { method: "POST" })).status).toBe(401);
  });

  test("is found out where the run ends while its request is on the way", async () => {
    const { hostname, port } = new URL(gatewayUrl());
    const headers = { authorization: `Bearer ${run.token}`, "content-type": "application/json" };
    const request = httpRequest({ hostname, port, method: "POST", path: "/v1/chat/completions", headers });
    const reached = asked();
    request.write("{");
    await reached;
    measured();
    request.end('"model":"gpt-4o-mini","messages":[]}');
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream & { statusCode: number }];
    expect(response.statusCode).toBe(401);
    response.resume();
    expect(provider.requests).toHaveLength(0);
  });
});

describe("what the gateway does not take", () => {
  test("other paths are 404, and the message says what there is", async () => {
    const error = await errorOf(client().embeddings.create({ model: "m", input: "x" }));
    expect(error).toMatchObject({ status: 404, code: "not_found" });
    expect(error.message).toContain("POST /v1/chat/completions and GET /v1/models");
  });

  test.each(["[1]", "{", '"text"', ""])("%j is no request: 400", async (body) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_json" } });
    expect(measured().calls).toBe(0);
  });

  test.each(["told beforehand", "streamed"])(
    "a body over the limit, its length %s: 413, and the connection lives on",
    async (how) => {
      const body = JSON.stringify({ ...CHAT, user: "x".repeat(3_000_000) });
      const streamed = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(body));
          controller.close();
        },
      });
      const response = await fetch(`${gatewayUrl()}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${run.token}` },
        ...(how === "streamed" ? { body: streamed, duplex: "half" as const } : { body }),
      });
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: { code: "request_too_large" } });
      expect(provider.requests).toHaveLength(0);
    },
  );

  test("calls beyond --max-cost: 403 and no request to the provider", async () => {
    await stop();
    await serve({ maxCostUsd: "0.0003" });
    await client().chat.completions.create(CHAT);
    const error = await errorOf(client().chat.completions.create(CHAT));
    expect(error).toMatchObject({ status: 403, code: "budget_spent" });
    expect(error.message).toContain("raise --max-cost to make more");
    expect(provider.requests).toHaveLength(1);
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: PRICE } });
  });
});

describe("a provider that fails", () => {
  test.each([
    ["step-rate-limited", 429, "Rate limit reached"],
    ["step-server-error", 500, "The server had an error"],
  ])("%s passes as it is, for the caller to try again, and costs nothing", async (model, status, message) => {
    const error = await errorOf(client().chat.completions.create({ ...CHAT, model }));
    expect(error).toMatchObject({ status });
    expect(error.message).toContain(message);
    if (status === 429) expect(error.headers?.get("retry-after")).toBe("1");
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: new Big(0) } });
  });

  test("the caller's own retries work, and each try counts as a call", async () => {
    provider.script({ queue: [{ kind: "error", status: 500, message: "once" }] });
    const own = new OpenAI({ apiKey: run.token, baseURL: gatewayUrl(), maxRetries: 2 });
    await own.chat.completions.create(CHAT);
    expect(measured().calls).toBe(2);
  });

  test("an answer without usage has no known cost", async () => {
    await client().chat.completions.create({ ...CHAT, model: "step-no-usage" });
    expect(measured()).toMatchObject({ calls: 1, cost: { reason: expect.stringContaining("no usage") as string } });
  });

  test("an error under HTTP 200 passes, and its cost is not known", async () => {
    const response = await post(JSON.stringify({ ...CHAT, model: "step-error-in-answer" }));
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { error: { message: "The upstream model failed" } },
    ]);
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: undefined } });
  });

  test.each([false, true])(
    "a connection that breaks off in the answer (stream: %s) is an error, and its cost is not known",
    async (stream) => {
      const call = async () => {
        const answer = await client().chat.completions.create({ ...CHAT, model: "step-cut", stream });
        if ("controller" in answer) for await (const chunk of answer) expect(chunk.choices.length).toBeGreaterThan(0);
      };
      const error = await errorOf(call());
      expect(error.message).toContain("no connection to");
      expect(measured()).toMatchObject({ calls: 1, cost: { usd: undefined } });
    },
  );

  test("one that is not there at all is 502, and costs nothing", async () => {
    const url = provider.url;
    await provider.close();
    const error = await errorOf(client().chat.completions.create(CHAT));
    expect(error).toMatchObject({ status: 502, code: "provider_unreachable" });
    expect(error.message).toContain(new URL(url).origin);
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: new Big(0) } });
    await provider.listen();
  });

  test("one that points elsewhere is 502 with what to check", async () => {
    provider.script({ otherwise: { kind: "raw", status: 302, contentType: "text/plain", body: "" } });
    const error = await errorOf(client().chat.completions.create(CHAT));
    expect(error).toMatchObject({ status: 502, code: "provider_redirects" });
  });

  test("one that answers a request for a stream with a whole completion is passed on and billed", async () => {
    const body = JSON.stringify({
      model: "gpt-4o-mini",
      choices: [{ index: 0, message: { role: "assistant", content: "PASS" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1000, completion_tokens: 0 },
    });
    provider.script({ otherwise: { kind: "raw", status: 200, contentType: "application/json", body } });
    expect(await (await post(JSON.stringify({ ...CHAT, stream: true }))).text()).toBe(body);
    expect(measured().cost).toEqual({ usd: new Big("0.00015") });
  });
});

describe("a caller that leaves", () => {
  test("ends the call to the provider, whose cost is not known", async () => {
    const controller = new AbortController();
    const call = client().chat.completions.create({ ...CHAT, model: "step-hang" }, { signal: controller.signal });
    const failed = expect(call).rejects.toBeInstanceOf(APIUserAbortError);
    await provider.until(({ requests }) => requests.length === 1);
    controller.abort();
    await failed;
    await provider.until(({ requests }) => requests[0]?.isAborted === true);
    await until(() => scorer.gatewayMeter.calls === 1);
    expect(measured()).toMatchObject({
      calls: 1,
      cost: { reason: expect.stringContaining("before its answer") as string },
    });
    expect(log).toEqual([]);
  });

  test("in the middle of its request is no fault of the sidecar's", async () => {
    const { hostname, port } = new URL(gatewayUrl());
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    const reached = asked();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${run.token}\r\ncontent-length: 100\r\n\r\n{"mo`,
    );
    await reached;
    socket.destroy();
    await client().chat.completions.create(CHAT);
    expect(log).toEqual([]);
    expect(measured().calls).toBe(1);
  });

  test("a run that ends takes its pending calls along", async () => {
    const call = errorOf(client().chat.completions.create({ ...CHAT, model: "step-hang" }));
    await provider.until(({ requests }) => requests.length === 1);
    const usage = measured();
    expect(await call).toMatchObject({ status: 401, code: "run_over" });
    await provider.until(({ requests }) => requests[0]?.isAborted === true);
    expect(usage).toMatchObject({
      calls: 1,
      cost: { usd: undefined, reason: "a model call was still in flight when the run ended" },
    });
  });

  test("as soon as it has [DONE] has been billed by then", async () => {
    const events = completionEvents(
      { ...CHAT, messages: [], stream: true, stream_options: { include_usage: true } },
      {
        kind: "answer",
        usage: USAGE,
      },
    );
    // It leaves the connection open behind [DONE].
    const raw = await serveFrom((response) => response.write(events.join("")));
    const response = await post(JSON.stringify({ ...CHAT, stream: true }));
    let seen = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      seen += chunk;
      if (seen.includes("[DONE]")) break;
    }
    expect(measured()).toMatchObject({ calls: 1, cost: { usd: PRICE } });
    raw.closeAllConnections();
    raw.close();
  });

  test("a stream whose reader is slow is not read ahead without end", async () => {
    const event = `data: ${JSON.stringify({ model: "m", choices: [{ delta: { content: "x".repeat(64 * 1024) } }] })}\n\n`;
    let written = 0;
    let stalled: () => void = () => undefined;
    const isStalled = new Promise<void>((resolve) => (stalled = resolve));
    let left: () => void = () => undefined;
    const hasLeft = new Promise<void>((resolve) => (left = resolve));
    const raw = await serveFrom((response) => {
      response.once("close", left);
      const more = (): void => {
        while (written < MOST_WRITTEN && response.write(event)) written += event.length;
        if (written >= MOST_WRITTEN) stalled();
        const timer = setTimeout(stalled, 500);
        response.once("drain", () => {
          clearTimeout(timer);
          more();
        });
      };
      more();
    });
    const { hostname, port } = new URL(gatewayUrl());
    const body = JSON.stringify({ ...CHAT, stream: true });
    const headers = { authorization: `Bearer ${run.token}`, "content-length": body.length };
    const request = httpRequest({ hostname, port, method: "POST", path: "/v1/chat/completions", headers });
    request.end(body);
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    response.pause();
    await isStalled;
    expect(written).toBeLessThan(MOST_WRITTEN / 2);
    request.on("error", () => undefined).destroy();
    await hasLeft;
    raw.close();
  });
});

const MOST_WRITTEN = 256 * 1024 * 1024;

/** Serves from a provider that answers every request with a stream, as `answer` writes it. */
async function serveFrom(answer: (response: ServerResponse) => void): Promise<Server> {
  const raw = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    answer(response);
  });
  raw.listen(0, "127.0.0.1");
  await once(raw, "listening");
  await stop();
  await serve({ baseUrl: `http://127.0.0.1:${(raw.address() as AddressInfo).port}/v1` });
  return raw;
}

describe("the provider's key", () => {
  test("goes to the provider, and the caller's does not", async () => {
    await client().chat.completions.create(CHAT);
    expect(provider.requests[0]?.headers.authorization).toBe(`Bearer ${PROVIDER_KEY}`);
    expect(JSON.stringify(provider.requests)).not.toContain(run.token);
  });

  test.each([
    ["an error", { kind: "error", status: 401, message: `Incorrect API key provided: ${PROVIDER_KEY}.` } as const],
    ["an answer", { kind: "answer", text: `Your key is ${PROVIDER_KEY}.` } as const],
  ])("that the provider repeats in %s reaches neither the caller nor the log", async (_what, otherwise) => {
    provider.script({ otherwise });
    for (const stream of [false, true]) {
      const response = await post(JSON.stringify({ ...CHAT, stream }));
      const text = await response.text();
      expect(text).toContain("[key]");
      expect(text).not.toContain(PROVIDER_KEY);
      expect(JSON.stringify([...response.headers])).not.toContain(PROVIDER_KEY);
    }
    expect(JSON.stringify(log)).not.toContain(PROVIDER_KEY);
  });
});

/** Resolves when the gateway has looked a token up. */
function asked(): Promise<void> {
  const lookUp = scorer.observations.gatewayOf.bind(scorer.observations);
  return new Promise((resolve) => {
    scorer.observations.gatewayOf = (token) => {
      resolve();
      return lookUp(token);
    };
  });
}

/** Resolves once the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
