import { fromBinary, toBinary, create } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encodeRequest, makeCases } from "../../bench/cases.js";
import { ScoreClient } from "../../bench/client.js";
import { ResultCheck } from "../../bench/result_check.js";
import { startServer, type ServerProcess } from "../../bench/server_process.js";
import { CaseErrorCode } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreBatchRequestSchema, ScoreBatchResponseSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { packageRoot } from "../../src/package_root.js";

const root = packageRoot();
let server: ServerProcess;

beforeAll(async () => {
  const script = ["bench/peers/grpcio_server.py", "--metric", "bench/metric.py"];
  server = await startServer(join(root, ".venv/bin/python"), script, root);
});

afterAll(() => server.stop());

test("the peer scores a stream: every case once, with its own score", async () => {
  const pool = makeCases(4, 64);
  const check = new ResultCheck(pool, 3);
  const client = new ScoreClient(server.address);
  const rounds = [...pool.messages, ...pool.messages, ...pool.messages];
  await client.stream(rounds, pool.casesPerMessage, (response) => check.take(response));
  client.close();
  expect(check.finish()).toMatchObject({ cases: 768, meanScore: 0.75 });
});

test("the peer answers a batch, and tells a case at fault apart", async () => {
  const { results } = await scoreBatch([
    { id: "a", input: {}, output: "bug", expected: { label: "bug" } },
    { id: "b", input: {}, output: "bug", expected: {} },
    { id: "c", input: {}, output: "bug", expected: { label: "refund" } },
  ]);
  expect(results.map(({ id, index, outcome }) => [id, index, outcome])).toMatchObject([
    ["a", 0, { case: "score", value: { value: 1, feedback: "Correct." } }],
    ["b", 1, { case: "error", value: { code: CaseErrorCode.METRIC_EXCEPTION, message: "KeyError: 'label'" } }],
    ["c", 2, { case: "score", value: { value: 0, feedback: "Expected 'refund', got 'bug'." } }],
  ]);
});

function scoreBatch(cases: Parameters<typeof encodeRequest>[0]) {
  const client = new Client(server.address, credentials.createInsecure(), { "grpc.enable_http_proxy": 0 });
  // `ScoreBatchRequest` has the fields of `ScoreRequest`.
  const request = fromBinary(ScoreBatchRequestSchema, encodeRequest(cases));
  return new Promise<ReturnType<typeof decode>>((resolve, reject) => {
    client.makeUnaryRequest(
      "/skynet.scoring.v1.ScoreService/ScoreBatch",
      (message: typeof request) => Buffer.from(toBinary(ScoreBatchRequestSchema, message)),
      decode,
      request,
      (error, response) => {
        client.close();
        if (error !== null) reject(error);
        else resolve(response ?? create(ScoreBatchResponseSchema));
      },
    );
  });
}

function decode(bytes: Uint8Array) {
  return fromBinary(ScoreBatchResponseSchema, bytes);
}
