import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ScoreService } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { jsonCase, start, TestClient } from "./clients.js";
import { FakeScorer, METRIC, scored } from "./fake_scorer.js";

const { score, scoreBatch } = ScoreService.method;

describe("Score over gRPC", () => {
  let scorer: FakeScorer;
  let sidecar: Sidecar;
  let client: TestClient;

  beforeEach(async () => {
    scorer = new FakeScorer();
    sidecar = await start({ scorer });
    client = new TestClient(sidecar);
  });

  afterEach(async () => {
    client.close();
    await sidecar.close({ drainTimeoutMs: 1_000 });
  });

  test("gives every case of a stream one result, with its id, its index and its timing", async () => {
    scorer.outcome = (item) => scored(item.index / 2, `feedback for ${item.id}`);
    const { responses, status, headers } = await client.call(score, [
      { cases: [jsonCase("a", '{"q": 1}', '"x"', '{"label": "x"}'), jsonCase("b", "{}", "null")] },
      { cases: [] },
      { cases: [jsonCase("c", "{}", "[]")] },
    ]);
    expect(status.code).toBe(0);
    expect(headers?.get("skynet-metric-fingerprint")).toEqual([METRIC.fingerprint]);
    const results = responses.flatMap((response) => response.results);
    expect(results).toMatchObject([
      { id: "a", index: 0, outcome: { case: "score", value: { value: 0, feedback: "feedback for a" } } },
      { id: "b", index: 1, outcome: { case: "score", value: { value: 0.5 } } },
      { id: "c", index: 2, outcome: { case: "score", value: { value: 1 } }, timing: { queuedMs: 0.25, metricMs: 0.5 } },
    ]);
    expect(scorer.seen.map(({ input, output, expected }) => [input, output, expected].map(text))).toEqual([
      ['{"q": 1}', '"x"', '{"label": "x"}'],
      ["{}", "null", undefined],
      ["{}", "[]", undefined],
    ]);
  });

  test("a stream without requests is valid and still has the fingerprint", async () => {
    const { responses, status, headers } = await client.call(score, []);
    expect({ responses, code: status.code }).toEqual({ responses: [], code: 0 });
    expect(headers?.get("skynet-metric-fingerprint")).toEqual([METRIC.fingerprint]);
  });

  test("ScoreBatch gives all results in one response, in the order of the cases", async () => {
    const { responses, status } = await client.call(scoreBatch, [
      { cases: [jsonCase("a", "{}", "1"), jsonCase("b", "{}", "2"), jsonCase("c", "{}", "3")] },
    ]);
    expect(status.code).toBe(0);
    expect(responses.map(({ results }) => results.map(({ id }) => id))).toEqual([["a", "b", "c"]]);
    expect((await client.call(scoreBatch, [{ cases: [] }])).responses).toMatchObject([{ results: [] }]);
  });

  test("the cases of a request go with its artifact", async () => {
    const artifact = { kind: { case: "json" as const, value: '"prompt"' } };
    const cases = [jsonCase("has", "{}", "1"), jsonCase("needs", "{}", undefined)];
    const { status } = await client.call(scoreBatch, [{ cases, artifact }]);
    expect(status.code).toBe(0);
    expect(scorer.seen.map((one) => [one.id, text(one.output), text(one.artifact)])).toEqual([
      ["has", "1", '"prompt"'],
      ["needs", undefined, '"prompt"'],
    ]);
  });

  test("results larger than a message come in several responses, none lost or cut", async () => {
    const feedback = "é".repeat(400_000);
    scorer.outcome = () => scored(0.5, feedback);
    const cases = Array.from({ length: 10 }, (_, index) => jsonCase(`case-${index}`, "{}", "1"));
    const { responses, status } = await client.call(score, [{ cases }]);
    expect(status.code).toBe(0);
    expect(responses.length).toBeGreaterThan(5);
    const results = responses.flatMap((response) => response.results);
    expect(results.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(results.every(({ outcome }) => outcome.case === "score" && outcome.value.feedback === feedback)).toBe(true);
  });
});

function text(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
}
