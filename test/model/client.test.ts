import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { ConnectionError } from "../../src/model/provider.js";
import { errorOf, fakeClient, QUESTION } from "./fake_client.js";
import { completed, failed } from "./fake_provider.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  vi.spyOn(Math, "random").mockReturnValue(1);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Milliseconds between the requests. */
function pauses(requests: readonly { readonly at: number }[]): number[] {
  return requests.slice(1).map(({ at }, place) => Math.round(at - (requests[place]?.at ?? NaN)));
}

describe("what is sent", () => {
  test("nothing that the user did not set", async () => {
    const { client, provider } = await fakeClient([completed()]);
    await client.complete(QUESTION);
    expect(provider.requests.map(({ body }) => body)).toEqual([{ model: "gpt-4o-mini", ...QUESTION }]);
  });

  test("everything that the user did set, zeros too", async () => {
    const { client, provider } = await fakeClient([completed()]);
    const responseFormat = { type: "json_object" };
    await client.complete({ ...QUESTION, model: "o9", temperature: 0, maxTokens: 5, responseFormat, timeoutMs: 1000 });
    const sent = { model: "o9", ...QUESTION, temperature: 0, max_tokens: 5, response_format: responseFormat };
    expect(provider.requests.map(({ body }) => body)).toEqual([sent]);
  });

  test("a parameter that the model refuses by name is dropped once, and remembered for that model alone", async () => {
    const refusal = failed(400, {
      message:
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
      param: "temperature",
      code: "unsupported_value",
    });
    const { client, provider, log } = await fakeClient([refusal, completed()]);
    await client.complete({ ...QUESTION, model: "o3", temperature: 0, maxTokens: 9 });
    await client.complete({ ...QUESTION, model: "o3", temperature: 0 });
    await client.complete({ ...QUESTION, model: "gpt-4o", temperature: 0 });
    expect(provider.requests.map(({ body }) => ["temperature" in body, body["max_tokens"]])).toEqual([
      [true, 9],
      [false, 9],
      [false, undefined],
      [true, undefined],
    ]);
    expect(log.warnings()).toEqual([
      "the model does not support temperature: it is left out of all calls to it from now on",
    ]);
  });

  test("max_tokens is left out where refused, never sent under another name", async () => {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    const refusal = failed(400, { message, param: "max_tokens", code: "unsupported_parameter" });
    const { client, provider } = await fakeClient([refusal, completed()]);
    await client.complete({ ...QUESTION, maxTokens: 9, temperature: 1 });
    expect(provider.requests[1]?.body).toEqual({ model: "gpt-4o-mini", ...QUESTION, temperature: 1 });
  });

  test("a value that is wrong is the caller's to mend", async () => {
    const refusal = failed(400, {
      message: "Invalid 'temperature': 3 is above the maximum of 2",
      param: "temperature",
    });
    const { client, provider } = await fakeClient([refusal]);
    const error = await errorOf(client.complete({ ...QUESTION, temperature: 3 }));
    expect(error).toMatchObject({ kind: "provider_status", status: 400 });
    expect(provider.requests).toHaveLength(1);
  });
});

describe("trying again", () => {
  test.each([408, 409, 429, 500, 502, 503, 529])("HTTP %i is tried again, with growing pauses", async (status) => {
    const { client, provider } = await fakeClient([failed(status), failed(status), failed(status), completed()]);
    const call = client.complete(QUESTION);
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await call).text).toBe("PASS");
    expect(pauses(provider.requests)).toEqual([500, 1000, 2000]);
  });

  test("and given up after five times", async () => {
    const { client, provider } = await fakeClient([failed(503)]);
    const call = errorOf(client.complete(QUESTION));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await call).toMatchObject({
      kind: "provider_status",
      status: 503,
      message: "the provider answered HTTP 503: status 503",
    });
    expect(pauses(provider.requests)).toEqual([500, 1000, 2000, 4000, 8000]);
  });

  test("jitter takes up to half of a pause", async () => {
    vi.mocked(Math.random).mockReturnValue(0);
    const { client, provider } = await fakeClient([failed(500), failed(500), completed()]);
    const call = client.complete(QUESTION);
    await vi.advanceTimersByTimeAsync(60_000);
    await call;
    expect(pauses(provider.requests)).toEqual([250, 500]);
  });

  test.each([400, 401, 403, 404, 413, 422])("HTTP %i is not", async (status) => {
    const { client, provider } = await fakeClient([failed(status)]);
    expect(await errorOf(client.complete(QUESTION))).toMatchObject({ kind: "provider_status", status });
    expect(provider.requests).toHaveLength(1);
  });

  test("an account without credit is not, though its status is 429", async () => {
    const { client, provider } = await fakeClient([failed(429, { code: "insufficient_quota" })]);
    expect(await errorOf(client.complete(QUESTION))).toMatchObject({
      kind: "insufficient_quota",
      message: "the provider answered HTTP 429: status 429; check the account's plan and billing",
    });
    expect(provider.requests).toHaveLength(1);
  });

  test.each([
    ["in seconds", () => ({ "retry-after": "7" }), 7000],
    ["in milliseconds", () => ({ "retry-after-ms": "250" }), 250],
    ["as a date", () => ({ "retry-after": new Date(Date.now() + 9000).toUTCString() }), 9000],
    [
      "as a date by a clock that is an hour off",
      () => ({ date: "Mon, 01 Jan 2029 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2029 00:00:30 GMT" }),
      30_000,
    ],
    ["that is past", () => ({ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }), 0],
  ])("Retry-After %s is kept", async (_, headers, expectedMs) => {
    vi.setSystemTime(new Date("2028-01-01T00:00:00Z"));
    vi.mocked(Math.random).mockReturnValue(0);
    const { client, provider } = await fakeClient([failed(429, {}, headers()), completed()]);
    const call = client.complete(QUESTION);
    await vi.advanceTimersByTimeAsync(60_000);
    await call;
    expect(pauses(provider.requests)).toEqual([expectedMs]);
  });

  test("never past the deadline: a wait that does not fit is not begun", async () => {
    const { client, provider } = await fakeClient([failed(429, {}, { "retry-after": "20" })]);
    const error = await errorOf(client.complete(QUESTION, { deadlineAt: performance.now() + 10_000 }));
    expect(error.message).toBe(
      "the provider answered HTTP 429: status 429; there is no time left to try again in 20 s",
    );
    expect(provider.requests).toHaveLength(1);
  });

  test("a broken connection is; a certificate that nobody trusts is not", async () => {
    const broken = new ConnectionError("it was reset", true);
    const { client, provider } = await fakeClient([broken, completed()]);
    const call = client.complete(QUESTION);
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await call).text).toBe("PASS");
    expect(provider.requests).toHaveLength(2);
    const untrusted = await fakeClient([new ConnectionError("CERT_HAS_EXPIRED", false)]);
    expect(await errorOf(untrusted.client.complete(QUESTION))).toMatchObject({
      kind: "unreachable",
      status: undefined,
    });
  });

  test("an error with the code of such a status, sent under HTTP 200, is", async () => {
    const hidden = { status: 200, body: JSON.stringify({ error: { code: 502, message: "upstream" } }) };
    const { client } = await fakeClient([hidden, completed()]);
    const call = client.complete(QUESTION);
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await call).cost.usd?.toFixed()).toBe("0.00021");
  });

  test("is told in the log, once a second at most", async () => {
    const { client, log } = await fakeClient([failed(500)]);
    const calls = [1, 2, 3].map(() => errorOf(client.complete(QUESTION)));
    await vi.advanceTimersByTimeAsync(400);
    expect(log.warnings()).toEqual(["a model call is tried again: the provider answered HTTP 500: status 500"]);
    await vi.advanceTimersByTimeAsync(60_000);
    await Promise.all(calls);
  });
});

describe("the end of a call", () => {
  test("by its own timeout", async () => {
    const { client } = await fakeClient(["hang"]);
    const call = errorOf(client.complete({ ...QUESTION, timeoutMs: 2500 }, { deadlineAt: performance.now() + 60_000 }));
    await vi.advanceTimersByTimeAsync(2499);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await call).toMatchObject({
      kind: "timeout",
      message: "the model call did not end within the 2.5 s that it had",
    });
  });

  test("by the caller's deadline", async () => {
    const { client } = await fakeClient(["hang"]);
    const call = errorOf(client.complete(QUESTION, { deadlineAt: performance.now() + 1000 }));
    await vi.advanceTimersByTimeAsync(1000);
    expect((await call).kind).toBe("timeout");
  });

  test("a deadline that is over lets nothing be sent", async () => {
    const { client, provider } = await fakeClient([completed()]);
    const error = await errorOf(client.complete(QUESTION, { deadlineAt: performance.now() - 1 }));
    expect(error).toMatchObject({ kind: "timeout", cost: { usd: expect.anything() as unknown } });
    expect(provider.requests).toEqual([]);
  });

  test("by the caller's signal, while waiting for another try, leaving no timer and no listener", async () => {
    const { client } = await fakeClient([failed(500)]);
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, "removeEventListener");
    const call = errorOf(
      client.complete(QUESTION, { signal: controller.signal, deadlineAt: performance.now() + 60_000 }),
    );
    await vi.advanceTimersByTimeAsync(10);
    controller.abort();
    expect(await call).toMatchObject({
      kind: "aborted",
      message: "the model call was given up by whoever made it, after the provider answered HTTP 500: status 500",
    });
    expect(vi.getTimerCount()).toBe(0);
    expect(removed).toHaveBeenCalledWith("abort", expect.anything());
  });

  test("a call that was ended in flight has a cost that nobody knows", async () => {
    const { client } = await fakeClient(["hang"]);
    const meter = new Meter();
    const call = errorOf(client.complete({ ...QUESTION, timeoutMs: 100 }, { meter }));
    await vi.advanceTimersByTimeAsync(100);
    await call;
    expect(meter.usage()).toMatchObject({
      calls: 1,
      callsOfUnknownCost: 1,
      cost: { usd: undefined, reason: "a call ended before its answer and usage were there" },
    });
  });
});

describe("answers that are none", () => {
  const message = (fields: object) => ({ choices: [{ message: fields, finish_reason: "stop" }] });

  test.each([
    [
      "no content",
      completed(message({ content: "" })),
      "empty_answer",
      "the model's answer is empty (finish_reason stop)",
    ],
    [
      "null content",
      completed(message({ content: null })),
      "empty_answer",
      "the model's answer is empty (finish_reason stop)",
    ],
    [
      "a refusal",
      completed(message({ content: null, refusal: "I\ncannot." })),
      "refusal",
      "the model refused: I cannot.",
    ],
    ["no choices", completed({ choices: [] }), "invalid_answer", /^the provider's answer has no choices: "/],
    [
      "something else",
      completed({ choices: undefined }),
      "invalid_answer",
      /^the provider's answer is not a chat completion: "/,
    ],
    [
      "an error under 200",
      completed({ choices: undefined, error: { message: "upstream failed" } }),
      "invalid_answer",
      "an error under HTTP 200: upstream failed",
    ],
  ] as const)("%s", async (_, reply, kind, text) => {
    const { client } = await fakeClient([reply]);
    const meter = new Meter();
    const error = await errorOf(client.complete(QUESTION, { meter }));
    expect(error).toMatchObject({ kind, status: 200, requestId: "req_1", model: "gpt-4o-mini" });
    expect(error.message).toMatch(text);
    expect(error.cost.usd?.toFixed()).toBe("0.00021");
    expect(meter.usage()).toMatchObject({ calls: 1, promptTokens: 1000, completionTokens: 100 });
  });

  test("an answer cut at its limit keeps what there is", async () => {
    const cut = completed({ choices: [{ message: { content: "PASS, since" }, finish_reason: "length" }] });
    const { client } = await fakeClient([cut]);
    expect(await errorOf(client.complete(QUESTION))).toMatchObject({
      kind: "length",
      finishReason: "length",
      text: "PASS, since",
      message:
        "the answer was cut at its limit of 100 tokens (finish_reason length): raise max_tokens, or ask for less",
    });
  });

  test.each([
    [
      "<!doctype html><title>Sign\n in</title>",
      /^the provider's answer is not JSON but an HTML page \("Sign in"\); does --model-base-url /,
    ],
    ['{"choices": [', /^the provider's answer is not JSON but "\{\\"choices\\": \["; /],
    ["", /^the provider's answer is not JSON but an empty body; /],
  ])("a body that is not JSON: %j", async (body, text) => {
    const { client } = await fakeClient([{ status: 200, body }]);
    const error = await errorOf(client.complete(QUESTION));
    expect(error.kind).toBe("invalid_answer");
    expect(error.message).toMatch(text);
    expect(error.message).not.toContain("\n");
    expect(error.cost).toEqual({ usd: undefined, reason: "the answer has no usage" });
  });

  test("the provider's words are there in one line, without the key, however long they are", async () => {
    const message = `Incorrect key sk-fake-0123456789.\n${"x".repeat(3000)}`;
    const { client } = await fakeClient([failed(401, { message })]);
    const error = await errorOf(client.complete(QUESTION));
    expect(error.message).toMatch(
      /^the provider answered HTTP 401: Incorrect key \[key\]\. x+…; check the key in FAKE_KEY$/,
    );
    expect(error.message.length).toBeLessThan(600);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("sk-fake-0123456789");
  });
});

test("content as a list of parts is joined", async () => {
  const content = [
    { type: "text", text: "PA" },
    { type: "text", text: "SS" },
  ];
  const { client } = await fakeClient([completed({ choices: [{ message: { content }, finish_reason: "stop" }] })]);
  expect(await client.complete(QUESTION)).toMatchObject({ text: "PASS", finishReason: "stop", requestId: "req_1" });
});

test("--max-cost stops further calls, and further tries, once it is spent", async () => {
  const { client, provider, log } = await fakeClient([completed()], "0.0004");
  const meter = new Meter();
  await client.complete(QUESTION, { meter });
  await client.complete(QUESTION, { meter });
  const error = await errorOf(client.complete(QUESTION, { meter }));
  expect(error).toMatchObject({
    kind: "budget_spent",
    message: "no more model calls: $0.00042 of $0.0004 is spent; raise --max-cost to make more",
  });
  expect(meter.usage().calls).toBe(2);
  expect(provider.requests).toHaveLength(2);
  expect(log.warnings()).toEqual(["--max-cost is spent: no more model calls"]);
});

test("--max-cost tells of calls that it cannot count", async () => {
  const { client, log } = await fakeClient([completed({ usage: undefined }), completed()], "0.0002");
  await client.complete(QUESTION);
  await client.complete(QUESTION);
  const error = await errorOf(client.complete(QUESTION));
  expect(error.message).toContain("$0.00021 of $0.0002 is spent, besides 1 call of unknown cost;");
  expect(log.warnings()[0]).toBe(
    "--max-cost does not count calls of unknown cost, and there is one now: the answer has no usage",
  );
});
