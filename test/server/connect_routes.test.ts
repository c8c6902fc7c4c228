import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Big } from "big.js";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ContractService, ContractStep } from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import { NO_TOKENS } from "../../src/model/token_usage.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { type LogLine, memoryLog, start } from "./clients.js";
import { FakeScorer, METRIC, scored } from "./fake_scorer.js";
import { testModels } from "./test_models.js";

let scorer: FakeScorer;
let log: LogLine[];
let sidecar: Sidecar;
let base: string;

beforeEach(async () => {
  scorer = new FakeScorer();
  log = [];
  sidecar = await start({ scorer, log: memoryLog(log), maxMessageBytes: 100_000 });
  base = `http://${sidecar.addresses[0] ?? ""}`;
});

afterEach(async () => {
  await sidecar.close({ drainTimeoutMs: 0 });
});

function post(
  path: string,
  body: NonNullable<RequestInit["body"]>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${base}/skynet.scoring.v1.${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
}

describe("ScoreBatch as JSON", () => {
  test("scores, and answers with the proto's field names, zeros written out", async () => {
    scorer.outcome = () => ({
      kind: "score",
      value: 0,
      feedback: Buffer.from("\u2028 Wrong: é"),
      scores: [
        ["__proto__", 0.5],
        ["format", 0],
      ],
      sideInfo: Buffer.from('{"hint": 1}'),
    });
    const body =
      '{"cases": [{"id": "a", "input": {"json": "{\\"n\\": 9007199254740993}"}, "output": {"value": {"__proto__": [1, null]}}}]}';
    const response = await post("ScoreService/ScoreBatch", body);
    expect(response.status).toBe(200);
    expect(response.headers.get("skynet-metric-fingerprint")).toBe(METRIC.fingerprint);
    expect(await response.text()).toBe(
      '{"results":[{"id":"a","index":0,"score":{"value":0,"feedback":"\u2028 Wrong: é",' +
        '"scores":{"__proto__":0.5,"format":0},"side_info_json":"{\\"hint\\": 1}"},"timing":{"queued_ms":0.25,"metric_ms":0.5}}]}',
    );
    expect(
      scorer.seen.map(({ input, output }) =>
        [String(input), String(output)].map((list) => Buffer.from(list.split(",").map(Number)).toString()),
      ),
    ).toEqual([['{"n": 9007199254740993}', '{"__proto__":[1,null]}']]);
  });

  test("a case's error travels in its result", async () => {
    scorer.outcome = () => ({
      kind: "error",
      code: "METRIC_EXCEPTION",
      message: "KeyError: 'label'",
      traceback: "secret",
    });
    const response = await post(
      "ScoreService/ScoreBatch",
      '{"cases": [{"input": {"json": "{}"}, "output": {"json": "1"}}]}',
    );
    const text = await response.text();
    expect(text).toContain('"error":{"code":"CASE_ERROR_CODE_METRIC_EXCEPTION","message":"KeyError: \'label\'"}');
    expect(text).not.toContain("secret");
  });

  test("the results stand in the order of the cases", async () => {
    const cases = Array.from({ length: 5 }, (_, index) => ({
      id: `${index}`,
      input: { json: "{}" },
      output: { json: "1" },
    }));
    const response = await post("ScoreService/ScoreBatch", JSON.stringify({ cases }));
    const { results } = (await response.json()) as { results: { id: string; index: number }[] };
    expect(results.map(({ id, index }) => [id, index])).toEqual(cases.map(({ id }, index) => [id, index]));
  });

  test.each([
    ["protobuf", "application/proto", "\xff\xff\xff", {}, /parse binary/],
    ["compressed", "application/json", "no gzip", { "content-encoding": "gzip" }, /decompress/],
    ["JSON", "application/json", "{", {}, /JSON/],
  ])("%s that cannot be read is invalid_argument", async (_, type, body, headers, why) => {
    const bytes = Buffer.from(body, "latin1");
    const response = await post("ScoreService/ScoreBatch", bytes, { "content-type": type, ...headers });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(why) as string,
    });
    expect(log).toEqual([]);
  });

  test("a payload that is not wrapped is an error that says how", async () => {
    const response = await post("ScoreService/ScoreBatch", '{"cases":[{"input":{"a":1},"output":"x"}]}');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /JsonValue.*; a payload is \{"value": …\} with any JSON, or \{"json": "…"\}/,
      ) as string,
    });
  });

  test.each([["application/x-www-form-urlencoded"], ["text/plain"], ["application/connect+json"]])(
    "as %s is told what to send",
    async (type) => {
      const response = await post("ScoreService/ScoreBatch", "{}", { "content-type": type });
      expect(response.status).toBe(415);
      expect(await response.json()).toMatchObject({
        message: expect.stringContaining("takes JSON with the header content-type: application/json") as string,
      });
    },
  );

  test("with GET is told to POST", async () => {
    const response = await fetch(`${base}/skynet.scoring.v1.ScoreService/ScoreBatch`);
    expect(response.status).toBe(405);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining("with POST") as string });
  });

  test("a misspelled field is an error that names it", async () => {
    const response = await post(
      "ScoreService/ScoreBatch",
      '{"cases": [{"input": {"json": "{}"}, "ouput": {"json": "1"}}]}',
    );
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("ouput") as string,
    });
  });

  test("a metric that is not loaded is failed_precondition with the reason", async () => {
    scorer.metric = { ...METRIC, loaded: false, loadError: "SyntaxError: invalid syntax (metric.py, line 3)" };
    const response = await post("ScoreService/ScoreBatch", "{}");
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "failed_precondition", message: scorer.metric.loadError });
  });

  test.each([
    ["plain", (text: string) => text, {}],
    ["compressed", (text: string) => gzipSync(text), { "content-encoding": "gzip" }],
  ])(
    "a %s message over the limit is resource_exhausted with both sizes, and the sidecar goes on",
    async (_how, encode, headers) => {
      const output = JSON.stringify("x".repeat(120_000));
      const body = JSON.stringify({ cases: [{ input: { json: "{}" }, output: { json: output } }] });
      const response = await post("ScoreService/ScoreBatch", encode(body), headers);
      expect(response.status).toBe(429);
      const { code, message } = (await response.json()) as { code: string; message: string };
      expect(code).toBe("resource_exhausted");
      expect(message).toContain("100000");
      expect((await post("ScoreService/ScoreBatch", "{}")).status).toBe(200);
    },
  );

  test("a fault of the sidecar says nothing of itself to the client, and all to the log", async () => {
    scorer.outcome = () => {
      throw new Error("a fault of the scorer's own");
    };
    const response = await post(
      "ScoreService/ScoreBatch",
      '{"cases": [{"input": {"json": "{}"}, "output": {"json": "1"}}]}',
    );
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("of the scorer's own");
    expect(log).toMatchObject([{ level: "error", fields: { err: new Error("a fault of the scorer's own") } }]);
  });

  test("a timeout that the client gives is deadline_exceeded, and ends its cases", async () => {
    scorer.outcome = () => new Promise<never>(() => undefined);
    const body = '{"cases": [{"input": {"json": "{}"}, "output": {"json": "1"}}]}';
    const response = await post("ScoreService/ScoreBatch", body, { "connect-timeout-ms": "100" });
    expect(response.status).toBe(504);
    expect(await response.json()).toMatchObject({ code: "deadline_exceeded" });
    expect(scorer).toMatchObject({ finalized: 1, aborted: 1 });
    expect(log).toEqual([]);
  });

  test("what runs past the drain timeout is unavailable", async () => {
    scorer.outcome = () => new Promise<never>(() => undefined);
    const answer = post("ScoreService/ScoreBatch", '{"cases": [{"input": {"json": "{}"}, "output": {"json": "1"}}]}');
    await scorer.until(() => scorer.seen.length === 1);
    await sidecar.close({ drainTimeoutMs: 10 });
    const response = await answer;
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: "unavailable" });
  });

  test("a client that leaves ends its cases", async () => {
    scorer.outcome = () => new Promise<never>(() => undefined);
    const controller = new AbortController();
    const left = fetch(`${base}/skynet.scoring.v1.ScoreService/ScoreBatch`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"cases": [{"input": {"json": "{}"}, "output": {"json": "1"}}]}',
      signal: controller.signal,
    }).catch((reason: unknown) => reason);
    await scorer.until(() => scorer.seen.length === 1);
    controller.abort();
    await left;
    await scorer.until(() => scorer.finalized === 1);
    expect(scorer.aborted).toBe(1);
  });
});

const NOTHING_USED = {
  calls: 0,
  prompt_tokens: 0,
  cached_prompt_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  cost_usd: 0,
};

describe("ContractService", () => {
  test("DescribeMetric tells what was loaded", async () => {
    const response = await post("ContractService/DescribeMetric", "{}");
    expect(await response.json()).toEqual({
      loaded: true,
      load_error: "",
      fingerprint: METRIC.fingerprint,
      file: "metric.py",
      arguments: 3,
      is_async: false,
      reward_spec_json: "",
      python_version: "3.12.1",
      start_method: "fork",
      start_method_reason: "",
      metric_timeout_ms: 60_000,
      workers: 2,
      version: "0.0.0-test",
      run_file: "",
      run_timeout_ms: 30_000,
      metric_usage: NOTHING_USED,
      gateway_usage: NOTHING_USED,
    });
  });

  test("DescribeMetric tells what model calls have used, and the limit on their cost", async () => {
    const models = testModels("http://127.0.0.1:9/v1", { maxCostUsd: "2.5" });
    const limited = await start({ scorer, models });
    const call = { usage: { ...NO_TOKENS, promptTokens: 12, completionTokens: 3 }, cost: { usd: new Big("0.02") } };
    scorer.metricMeter.record(call);
    scorer.gatewayMeter.record(call);
    scorer.gatewayMeter.record({
      usage: { ...NO_TOKENS, promptTokens: 2 ** 40 },
      cost: { usd: undefined, reason: "?" },
    });
    const address = `http://${limited.addresses[0] ?? ""}`;
    const response = await fetch(`${address}/skynet.scoring.v1.ContractService/DescribeMetric`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const used = { ...NOTHING_USED, prompt_tokens: 12, completion_tokens: 3 };
    expect(await response.json()).toMatchObject({
      metric_usage: { ...used, calls: 1, cost_usd: 0.02 },
      gateway_usage: { calls: 2, prompt_tokens: 2 ** 32 - 1, completion_tokens: 3 },
      max_cost_usd: 2.5,
    });
    await limited.close({ drainTimeoutMs: 0 });
  });

  test("CheckContract as plain JSON is told that it streams, as is whoever looks around", async () => {
    const response = await post("ContractService/CheckContract", "{}");
    expect(response.status).toBe(415);
    expect(await response.json()).toMatchObject({
      message: expect.stringMatching(/answers with a stream: .* application\/connect\+json .* grpcurl/) as string,
    });
    expect(await (await fetch(base)).text()).toMatch(/CheckContract \(answers with a stream/);
  });

  test.each([
    ["application/connect+proto", "\xff\xff\xff", /parse binary/],
    ["application/connect+json", '{"samples":[{"input":{"a":1}}]}', /a payload is \{"value": …\}/],
  ])("CheckContract that cannot be read as %s is invalid_argument", async (type, body, why) => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    const message = Buffer.concat([head, Buffer.from(body, "latin1")]);
    const response = await post("ContractService/CheckContract", message, { "content-type": type });
    const [end] = /\{.*\}/.exec(await response.text()) ?? [""];
    const { error } = JSON.parse(end) as { error: { code: string; message: string } };
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toMatch(why);
    expect(log).toEqual([]);
  });

  test("CheckContract streams to a Connect client, the verdict last", async () => {
    scorer.outcome = ({ index }) => scored(index === 0 ? 1 : 0, "");
    const transport = createConnectTransport({ baseUrl: base, httpVersion: "1.1" });
    const client = createClient(ContractService, transport);
    const samples = Array.from({ length: 5 }, (_, index) => ({
      id: `${index}`,
      input: { kind: { case: "json" as const, value: "{}" } },
      output: { kind: { case: "json" as const, value: "1" } },
      expected: { kind: { case: "json" as const, value: "{}" } },
    }));
    const events = [];
    for await (const { event } of client.checkContract({ samples })) events.push(event);
    const steps = events.flatMap((event) => (event.case === "check" ? [event.value.step] : []));
    expect(steps).toEqual([
      ContractStep.METRIC_FILE,
      ContractStep.METRIC_FUNCTION,
      ContractStep.REWARD_SPEC,
      ContractStep.SAMPLE_CASES,
      ContractStep.METRIC_CALL,
      ContractStep.METRIC_RETURN_VALUE,
    ]);
    expect(events[3]).toMatchObject({ value: { name: "Sample cases", message: "the first 3 of 5 are used" } });
    expect(events.at(-1)).toMatchObject({
      case: "verdict",
      value: { passed: true, passedCount: 6, failedCount: 0, skippedCount: 0, warningCount: 2 },
    });
  });

  test("CheckContract of a metric that did not load is failed checks, not an error", async () => {
    scorer.metric = { ...METRIC, loaded: false, loadError: "SyntaxError: invalid syntax (metric.py, line 3)" };
    const client = createClient(ContractService, createConnectTransport({ baseUrl: base, httpVersion: "1.1" }));
    const events = [];
    for await (const { event } of client.checkContract({})) events.push(event);
    expect(events.at(0)).toMatchObject({ value: { name: "Metric file", message: scorer.metric.loadError } });
    expect(events.at(-1)).toMatchObject({ case: "verdict", value: { passed: false, failedCount: 1 } });
  });
});

describe("those who look around", () => {
  test("GET / says what this is and what there is", async () => {
    const response = await fetch(`${base}/`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await response.text()).toContain("POST /skynet.scoring.v1.ScoreService/ScoreBatch");
  });

  test.each(["/favicon.ico", "/skynet.scoring.v1.ScoreService/Score", "//", "/?x=1"])(
    "%s is a 404 that lists what there is",
    async (path) => {
      const response = await fetch(`${base}${path}`, { method: "POST", body: "" });
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("POST /skynet.scoring.v1.ContractService/CheckContract");
    },
  );
});
