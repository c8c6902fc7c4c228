import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { openModels, type ModelOptions, type Models } from "../../src/model/open_models.js";
import { Meter } from "../../src/model/meter.js";
import { ModelServer } from "../model_server/server.js";
import { errorOf, QUESTION } from "./fake_client.js";
import { RecordingLog } from "./log.js";

const SECRET = "sk-very-secret-1";
const log = new RecordingLog();
const server = new ModelServer();
const opened: Models[] = [];

beforeEach(async () => {
  server.script({});
  await server.listen();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((models) => models.close()));
  await server.close();
});

function open(options: Partial<ModelOptions> = {}): Models {
  const models = openModels(
    {
      baseUrl: server.url,
      keyVariable: "OPENAI_API_KEY",
      environment: { OPENAI_API_KEY: SECRET },
      pricesFile: undefined,
      maxCostUsd: undefined,
      metricModel: "gpt-4o-mini",
      reflectionModel: undefined,
      ...options,
    },
    log,
  );
  opened.push(models);
  return models;
}

describe("a call", () => {
  test("gives the answer, what it used and what it cost", async () => {
    server.script({
      otherwise: { kind: "answer", text: "FAIL. No.", usage: { prompt: 2006, cached: 1920, completion: 300 } },
    });
    const answer = await open().client.complete(QUESTION);
    expect(answer).toMatchObject({
      text: "FAIL. No.",
      model: "gpt-4o-mini",
      finishReason: "stop",
      requestId: "req_scripted",
      usage: { promptTokens: 2006, cachedPromptTokens: 1920, completionTokens: 300, reasoningTokens: 0 },
    });
    expect(answer.cost.usd?.toFixed()).toBe("0.0003369");
  });

  test("carries the key in its header, and images as they are", async () => {
    const content = [
      { type: "text", text: "What is it?" },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    ];
    await open().client.complete({ messages: [{ role: "user", content }] });
    expect(server.requests[0]).toMatchObject({
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${SECRET}` },
    });
    expect(server.chats()).toEqual([{ model: "gpt-4o-mini", messages: [{ role: "user", content }] }]);
  });

  test("without a key has no such header", async () => {
    await open({ environment: {} }).client.complete(QUESTION);
    expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  test("goes below a base URL with or without a slash, and keeps its query", async () => {
    await open({ baseUrl: `${server.url}/?api-version=2` }).client.complete(QUESTION);
    expect(server.requests[0]?.path).toBe("/v1/chat/completions?api-version=2");
  });
});

describe("many calls", () => {
  test("are in flight at the same time", async () => {
    const { client } = open();
    const controller = new AbortController();
    const calls = Array.from({ length: 80 }, () =>
      errorOf(client.complete({ ...QUESTION, model: "step-hang" }, { signal: controller.signal })),
    );
    await server.until(({ requests }) => requests.length === 80);
    controller.abort();
    expect(new Set((await Promise.all(calls)).map(({ kind }) => kind))).toEqual(new Set(["aborted"]));
  });

  test("share a connection where they come one after the other", async () => {
    const { client } = open();
    const before = server.connections;
    for (let call = 0; call < 20; call += 1) await client.complete(QUESTION);
    // A socket is free a moment after its answer, so that a call on its heels may open a second one.
    expect(server.connections - before).toBeLessThan(4);
  });
});

describe("a fault of the provider", () => {
  test.each([
    ["step-empty", { kind: "empty_answer", status: 200 }],
    ["step-no-choices", { kind: "invalid_answer", status: 200 }],
    ["step-refusal", { kind: "refusal", providerMessage: "I cannot help with that." }],
    ["step-length", { kind: "length", text: "PASS, since the", finishReason: "length" }],
    ["step-error-in-answer", { kind: "invalid_answer", providerMessage: "The upstream model failed" }],
    ["step-html", { kind: "invalid_answer", status: 200 }],
    ["step-insufficient-quota", { kind: "insufficient_quota", status: 429 }],
  ])("%s", async (model, expected) => {
    const error = await errorOf(open().client.complete({ ...QUESTION, model }));
    expect(error).toMatchObject({ ...expected, model, requestId: "req_scripted" });
    expect(server.requests).toHaveLength(1);
  });

  test("an answer without usage has no known cost", async () => {
    const answer = await open().client.complete({ ...QUESTION, model: "step-no-usage" });
    expect(answer).toMatchObject({ usage: undefined, cost: { usd: undefined, reason: "the answer has no usage" } });
  });

  test("a refused parameter", async () => {
    const { client } = open();
    await client.complete({ ...QUESTION, model: "step-no-temperature", temperature: 0 });
    await client.complete({ ...QUESTION, model: "step-no-temperature", temperature: 0 });
    expect(server.chats().map((chat) => "temperature" in chat)).toEqual([true, false, false]);
  });

  test("Retry-After, a reset and a server error are overcome", async () => {
    const rateLimited = { kind: "error", status: 429, message: "slow down", headers: { "retry-after": "0" } } as const;
    server.script({ queue: [rateLimited, { kind: "reset" }, { kind: "error", status: 500, message: "oops" }] });
    const answer = await open().client.complete(QUESTION);
    expect(answer.cost.usd?.gt(0)).toBe(true);
    expect(server.requests).toHaveLength(4);
  });

  test("an answer that is cut off is asked for again, and its cost is not known", async () => {
    server.script({ queue: [{ kind: "cut" }] });
    const answer = await open().client.complete(QUESTION);
    expect(answer.text).toBe("PASS. It is as it should be.");
    expect(answer.cost).toEqual({ usd: undefined, reason: "a call ended before its answer and usage were there" });
  });

  test("nobody listening is told with the address", async () => {
    const { client } = open({ baseUrl: "http://127.0.0.1:9/v1" });
    const error = await errorOf(client.complete({ ...QUESTION, timeoutMs: 100 }));
    expect(error.kind).toBe("unreachable");
    expect(error.message).toContain("no connection to http://127.0.0.1:9: nobody listens there (ECONNREFUSED)");
    expect(error.cost.usd?.toFixed()).toBe("0");
  });

  test("the provider that repeats the key does not bring it into an error", async () => {
    const message = `Incorrect API key provided: ${SECRET}`;
    server.script({ otherwise: { kind: "error", status: 401, message } });
    const error = await errorOf(open().client.complete(QUESTION));
    expect(error.message).toBe(
      "the provider answered HTTP 401: Incorrect API key provided: [key]; check the key in OPENAI_API_KEY",
    );
    expect(JSON.stringify(log.entries)).not.toContain(SECRET);
  });
});

describe("a call that is given up", () => {
  test("is aborted at the provider, and the next one is served", async () => {
    const { client } = open();
    const controller = new AbortController();
    const meter = new Meter();
    const call = errorOf(client.complete({ ...QUESTION, model: "step-hang" }, { signal: controller.signal, meter }));
    await server.until(({ requests }) => requests.length === 1);
    controller.abort();
    expect(await call).toMatchObject({ kind: "aborted" });
    await server.until(({ requests }) => requests[0]?.isAborted === true);
    expect(meter.usage()).toMatchObject({ calls: 1, callsOfUnknownCost: 1 });
    expect((await client.complete(QUESTION)).text).toBe("PASS. It is as it should be.");
  });

  test("by its deadline too", async () => {
    const call = errorOf(open().client.complete({ ...QUESTION, model: "step-hang", timeoutMs: 50 }));
    expect(await call).toMatchObject({ kind: "timeout" });
    await server.until(({ requests }) => requests[0]?.isAborted === true);
  });
});

describe("options", () => {
  test("no model is an error that names both options", async () => {
    const { client } = open({ metricModel: undefined });
    const error = await errorOf(client.complete(QUESTION));
    expect(error).toMatchObject({ kind: "no_model" });
    expect(error.message).toMatch(/--metric-model NAME.*--reflection-model NAME/);
  });

  test("the reflection model takes the metric model's place; the call's own comes first", async () => {
    const { client } = open({ metricModel: undefined, reflectionModel: "gpt-4o" });
    await client.complete(QUESTION);
    await client.complete({ ...QUESTION, model: "gpt-4.1" });
    expect(server.chats().map(({ model }) => model)).toEqual(["gpt-4o", "gpt-4.1"]);
  });

  test("a model at OpenAI needs a key, told before anything is sent", () => {
    expect(() => open({ baseUrl: undefined, environment: {} })).toThrow(
      "no key for the model: set OPENAI_API_KEY, name another variable with --model-api-key-env, or another provider with --model-base-url",
    );
    open({ baseUrl: undefined, environment: {}, metricModel: undefined });
  });

  test.each(["api.openai.com", "ftp://host/v1", ""])("a base URL that is none: %j", (baseUrl) => {
    expect(() => open({ baseUrl })).toThrow(/^the model's base URL ".*" is none: expected one such as https:/);
  });

  test("a password in the base URL is refused, and not shown", () => {
    const opening = () => open({ baseUrl: "https://user:hunter2@host/v1" });
    expect(opening).toThrow(/user or password/);
    expect(opening).not.toThrow(/hunter2/);
  });
});

describe("a proxy", () => {
  let proxy: Server;
  const sockets = new Set<Socket>();
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => proxy.close(resolve));
  });

  async function listen(answer: (socket: Socket, heard: string) => void): Promise<string> {
    proxy = createServer((socket) => {
      sockets.add(socket);
      let heard = "";
      socket.on("error", () => socket.destroy());
      socket.on("data", (bytes) => {
        heard += bytes.toString("latin1");
        answer(socket, heard);
      });
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const address = proxy.address();
    return `http://user:hunter2@127.0.0.1:${typeof address === "object" ? (address?.port ?? 0) : 0}`;
  }

  test("carries plain HTTP to the provider by its whole address", async () => {
    let request = "";
    const body = JSON.stringify({
      choices: [{ message: { content: "PASS" } }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    });
    const url = await listen((socket, heard) => {
      request = heard;
      if (!heard.includes('"messages"')) return;
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    const models = open({ baseUrl: "http://model.test/v1", environment: { HTTP_PROXY: url } });
    expect((await models.client.complete(QUESTION)).text).toBe("PASS");
    expect(request).toMatch(/^POST http:\/\/model\.test\/v1\/chat\/completions HTTP\/1\.1\r\n/);
    expect(request).toContain(`proxy-authorization: Basic ${Buffer.from("user:hunter2").toString("base64")}`);
  });

  test("is asked for a tunnel to a provider with TLS, which hides the key from it", async () => {
    let heardAll = "";
    const url = await listen((socket, heard) => {
      heardAll = heard;
      if (heard.endsWith("\r\n\r\n")) socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      else socket.destroy();
    });
    const models = open({
      baseUrl: "https://model.test/v1",
      environment: { HTTPS_PROXY: url, OPENAI_API_KEY: SECRET },
    });
    const error = await errorOf(models.client.complete({ ...QUESTION, timeoutMs: 200 }));
    expect(heardAll).toMatch(/^CONNECT model\.test:443 HTTP\/1\.1\r\n/);
    // What follows the tunnel's request is the first record of TLS.
    expect(heardAll.split("\r\n\r\n")[1]?.startsWith("\x16\x03")).toBe(true);
    expect(heardAll).not.toContain(SECRET);
    expect(error.message).not.toContain("hunter2");
  });

  test.each(["https://model.test", "http://model.test"])(
    "that refuses is told of, by its name without its password: %s",
    async (origin) => {
      const refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
      const url = await listen((socket) => socket.end(refusal));
      const models = open({ baseUrl: `${origin}/v1`, environment: { ALL_PROXY: url } });
      const error = await errorOf(models.client.complete(QUESTION));
      expect(error.kind).toBe("unreachable");
      const proxyHost = new URL(url).host;
      expect(error.message).toBe(`no connection to ${origin} through the proxy ${proxyHost}, which answered HTTP 407`);
    },
  );
});
