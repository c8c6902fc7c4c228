import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ContractService } from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import {
  ScoreRequestSchema,
  ScoreResponseSchema,
  ScoreService,
} from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { methodPath } from "../../src/server/grpc_method.js";
import { READ_AHEAD_BYTES } from "../../src/server/read_gate.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { answerOf, jsonCase, type LogLine, memoryLog, start, TestClient } from "./clients.js";
import { FakeScorer, METRIC, scored } from "./fake_scorer.js";
import { frame, openCall, openSession, readAll, settled } from "./raw_http2.js";

const { score, scoreBatch } = ScoreService.method;
const STATUS = {
  OK: 0,
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
};

let scorer: FakeScorer;
let log: LogLine[];
let sidecar: Sidecar;
let client: TestClient;

beforeEach(async () => {
  scorer = new FakeScorer();
  log = [];
  sidecar = await start({ scorer, log: memoryLog(log), maxMessageBytes: 30_000_000 });
  client = new TestClient(sidecar);
});

afterEach(async () => {
  client.close();
  await sidecar.close({ drainTimeoutMs: 0 });
});

const oneCase = { cases: [jsonCase("a", "{}", "1")] };

describe("a call that ends early", () => {
  test("a client that cancels ends its cases, and the generators behind it run their finally blocks", async () => {
    scorer.outcome = () => new Promise<never>(() => undefined);
    const call = client.open(score);
    const answer = answerOf(call);
    call.write(oneCase);
    await scorer.until(() => scorer.seen.length === 1);
    call.cancel();
    expect((await answer).status.code).toBe(STATUS.CANCELLED);
    await scorer.until(() => scorer.finalized === 1);
    expect(scorer.aborted).toBe(1);
  });

  test("so does a client that has sent nothing yet", async () => {
    const call = client.open(score);
    const answer = answerOf(call);
    call.on("metadata", () => {
      call.cancel();
    });
    expect((await answer).status.code).toBe(STATUS.CANCELLED);
    await scorer.until(() => scorer.finalized === 1);
  });

  test("so does a connection that is cut, and other calls notice nothing", async () => {
    scorer.outcome = ({ id }) => (id === "hangs" ? new Promise<never>(() => undefined) : scored(1));
    const session = openSession(sidecar.addresses[0] ?? "");
    const stream = openCall(session, methodPath(score));
    stream.write(frame(requestBytes([jsonCase("hangs", "{}", "1")])));
    await scorer.until(() => scorer.seen.length === 1);
    session.destroy();
    await scorer.until(() => scorer.finalized === 1);
    expect((await client.call(score, [oneCase])).status.code).toBe(STATUS.OK);
  });

  test("a deadline that passes ends the call", async () => {
    scorer.outcome = () => new Promise<never>(() => undefined);
    const { status } = await client.call(score, [oneCase], { deadline: Date.now() + 100 });
    expect(status.code).toBe(STATUS.DEADLINE_EXCEEDED);
    await scorer.until(() => scorer.finalized === 1);
    expect(scorer.aborted).toBe(1);
  });

  test("results that were ready before a failure still arrive", async () => {
    scorer.outcome = ({ id }) => {
      if (id === "breaks") throw new Error("a fault of the scorer's own");
      return scored(1);
    };
    const call = client.open(score);
    const answer = answerOf(call);
    call.write(oneCase);
    await scorer.until(() => scorer.seen.length === 1);
    call.write({ cases: [jsonCase("breaks", "{}", "1")] });
    const { responses, status } = await answer;
    expect(responses.flatMap(({ results }) => results)).toMatchObject([{ id: "a" }]);
    expect(status.code).toBe(STATUS.INTERNAL);
    expect(status.details).not.toContain("a fault of the scorer's own");
    expect(log).toMatchObject([{ level: "error", fields: { err: new Error("a fault of the scorer's own") } }]);
  });
});

describe("a call that is refused", () => {
  test("a metric that is not loaded is FAILED_PRECONDITION with the reason, at once", async () => {
    scorer.metric = {
      ...METRIC,
      loaded: false,
      loadError: "ModuleNotFoundError: No module named 'x' (metric.py, line 3)",
    };
    const call = client.open(score);
    const { status } = await answerOf(call);
    expect(status).toMatchObject({ code: STATUS.FAILED_PRECONDITION, details: scorer.metric.loadError });
  });

  test("a reason of a megabyte arrives cut, with a mark", async () => {
    scorer.metric = { ...METRIC, loaded: false, loadError: `RuntimeError: ${"é\n\0日本".repeat(200_000)}` };
    const { status } = await client.call(scoreBatch, [oneCase]);
    expect(status.code).toBe(STATUS.FAILED_PRECONDITION);
    expect(status.details).toMatch(/^RuntimeError: é {2}日本.* \.\.\. \[cut\]$/);
  });

  test("a message that is not one of protobuf is INVALID_ARGUMENT", async () => {
    for (const method of [score, scoreBatch, ContractService.method.checkContract]) {
      const status = await rawStatus(methodPath(method), [Buffer.from([0x0a, 0x7f])]);
      expect(status).toMatchObject({ code: STATUS.INVALID_ARGUMENT });
      expect(status.details).toContain(`not a valid ${method.input.typeName} message`);
    }
  });

  test.each([
    [0, "none"],
    [2, "more than one"],
  ])("%i requests where one is expected are INVALID_ARGUMENT", async (count, came) => {
    const { status } = await client.call(
      scoreBatch,
      Array.from({ length: count }, () => oneCase),
    );
    expect(status.code).toBe(STATUS.INVALID_ARGUMENT);
    expect(status.details).toContain(`exactly one request message, and ${came} came`);
  });

  test("unknown methods are UNIMPLEMENTED", async () => {
    expect(await rawStatus("/skynet.scoring.v1.ScoreService/Guess", [])).toMatchObject({ code: STATUS.UNIMPLEMENTED });
  });
});

describe("messages over the limit", () => {
  test("answer RESOURCE_EXHAUSTED with both sizes, and the sidecar goes on", async () => {
    const request = { cases: [jsonCase("large", "{}", JSON.stringify("x".repeat(30_000_000)))] };
    const size = requestBytes(request.cases).length;
    for (const { status } of [await client.call(score, [request]), await client.call(scoreBatch, [request])]) {
      expect(status.code).toBe(STATUS.RESOURCE_EXHAUSTED);
      expect(status.details).toContain(String(size));
      expect(status.details).toContain("30000000");
    }
    expect((await client.call(score, [oneCase])).status.code).toBe(STATUS.OK);
  });

  test("a case of almost the limit is scored", async () => {
    const output = JSON.stringify("x".repeat(29_000_000));
    const { responses } = await client.call(scoreBatch, [{ cases: [jsonCase("large", "{}", output)] }]);
    expect(responses[0]?.results).toMatchObject([{ id: "large", outcome: { case: "score" } }]);
    expect(scorer.seen[0]?.output?.length).toBe(output.length);
  });
});

describe("back-pressure", () => {
  const FEEDBACK_BYTES = 64 * 1024;
  const CASES = 500;

  test("a client that does not read its results is not read from either; when it reads, all are there", async () => {
    scorer.outcome = () => scored(0.5, "x".repeat(FEEDBACK_BYTES));
    const session = openSession(sidecar.addresses[0] ?? "");
    const stream = openCall(session, methodPath(score));
    for (let index = 0; index < CASES; index++) stream.write(frame(requestBytes([jsonCase(`${index}`, "{}", "1")])));
    stream.end();
    await scorer.until(() => scorer.seen.length > 0);
    const pulled = await settled(() => scorer.seen.length);
    // Buffers of the kernel and of HTTP/2 on both sides, and what the sidecar itself lets stand.
    expect(pulled * FEEDBACK_BYTES).toBeLessThan(8 * 1024 * 1024);

    const responses = await readAll(stream, ScoreResponseSchema);
    const indexes = responses.flatMap(({ results }) => results.map(({ index }) => index));
    expect(indexes).toEqual(Array.from({ length: CASES }, (_, index) => index));
    session.close();
  });

  test("what is read ahead of a busy handler is bounded by bytes, not by messages", async () => {
    const size = 4 * 1024 * 1024;
    let go: () => void = () => undefined;
    const busy = new Promise<void>((resolve) => (go = resolve));
    scorer.outcome = async () => {
      await busy;
      return scored(1);
    };
    const session = openSession(sidecar.addresses[0] ?? "");
    const stream = openCall(session, methodPath(score));
    const output = JSON.stringify("x".repeat(size));
    const sent = { bytes: 0 };
    for (let index = 0; index < 16; index++) {
      stream.write(frame(requestBytes([jsonCase(`${index}`, "{}", output)])), () => (sent.bytes += size));
    }
    stream.end();
    await scorer.until(() => scorer.seen.length === 1);
    const accepted = await settled(() => sent.bytes);
    // One message in hand, the bound and the message that crossed it, and one under way in buffers.
    expect(accepted).toBeLessThanOrEqual(READ_AHEAD_BYTES + 3 * size);

    go();
    const responses = await readAll(stream, ScoreResponseSchema);
    expect(responses.flatMap(({ results }) => results)).toHaveLength(16);
    session.close();
  });
});

function requestBytes(cases: ReturnType<typeof jsonCase>[]): Uint8Array {
  return toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases }));
}

/** What comes of requests that generated code would never send. */
function rawStatus(path: string, requests: readonly Buffer[]): Promise<{ code: number; details: string }> {
  const raw = new Client(sidecar.addresses[0] ?? "", credentials.createInsecure());
  const same = (bytes: Buffer): Buffer => bytes;
  const call = raw.makeBidiStreamRequest(path, same, same);
  const answer = answerOf(call);
  for (const request of requests) call.write(request);
  call.end();
  return answer.then(({ status }) => {
    raw.close();
    return { code: status.code, details: status.details };
  });
}
