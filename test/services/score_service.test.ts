import { describe, expect, test } from "vitest";

import type { Case } from "../../src/scoring/case.js";
import type { CaseResult } from "../../src/scoring/result.js";
import { type MetricDescription, type ScoreCall, ScorerError } from "../../src/scoring/scorer.js";
import type { CallContext } from "../../src/services/call_context.js";
import { type CaseBatch, ScoreService } from "../../src/services/score_service.js";
import { FakeScorer, METRIC, scored } from "../server/fake_scorer.js";

const MESSAGE_BYTES = 1000;

function contextOf(fingerprints: string[] = []): CallContext {
  return { signal: new AbortController().signal, sendFingerprint: (fingerprint) => fingerprints.push(fingerprint) };
}

function item(index: number, change: Partial<Case> = {}): Case {
  const payload = new TextEncoder().encode("{}");
  return { id: `${index}`, index, input: payload, output: payload, expected: undefined, observationId: "", ...change };
}

async function* stream(...batches: CaseBatch[]): AsyncGenerator<CaseBatch, void, undefined> {
  for (const batch of batches) yield await Promise.resolve(batch);
}

/** Ends cases in the reverse of their order. */
class ReversingScorer extends FakeScorer {
  override open(): ScoreCall {
    async function* score(batches: AsyncIterable<readonly Case[]>): AsyncGenerator<readonly CaseResult[]> {
      for await (const batch of batches) {
        for (const { id, index } of batch.toReversed()) {
          yield [{ id, index, outcome: scored(1), queuedMs: 0, metricMs: 0 }];
        }
      }
    }
    return { metric: METRIC, score };
  }
}

describe("score", () => {
  test("gives results as they come, and the fingerprint before the first of them", async () => {
    const fingerprints: string[] = [];
    const batches = stream([item(0), item(1)], [item(2)]);
    const results = new ScoreService(new ReversingScorer(), MESSAGE_BYTES).score(batches, contextOf(fingerprints));
    expect(fingerprints).toEqual([METRIC.fingerprint]);
    const indexes: number[] = [];
    for await (const ready of results) indexes.push(...ready.map(({ index }) => index));
    expect(indexes).toEqual([1, 0, 2]);
  });

  test("a call of a metric that is not loaded never begins", () => {
    const scorer = new FakeScorer();
    const metric: MetricDescription = { ...METRIC, loaded: false, loadError: "SyntaxError" };
    scorer.metric = metric;
    const fingerprints: string[] = [];
    expect(() => new ScoreService(scorer, MESSAGE_BYTES).score(stream(), contextOf(fingerprints))).toThrow(
      new ScorerError("metric_not_loaded", "SyntaxError"),
    );
    expect(fingerprints).toEqual([]);
  });
});

describe("scoreBatch", () => {
  test("gives the results in the order of the cases, whatever ends first", async () => {
    const batch = [item(0), item(1), item(2)];
    const results = await new ScoreService(new ReversingScorer(), MESSAGE_BYTES).scoreBatch(batch, contextOf());
    expect(results.map(({ index }) => index)).toEqual([0, 1, 2]);
  });

  test("results that do not fit into one message are an error that says what to do", async () => {
    const batch = Array.from({ length: 20 }, (_, index) => item(index));
    const service = new ScoreService(new ReversingScorer(), MESSAGE_BYTES);
    await expect(service.scoreBatch(batch, contextOf())).rejects.toThrow(
      /^\d of the 20 results take more than the 1000 bytes that one message may have; send fewer cases in a ScoreBatch call, use Score, /,
    );
  });

  test("cases go to the scorer as they are", async () => {
    const scorer = new FakeScorer();
    const cases = [item(0, { output: undefined })];
    await new ScoreService(scorer, MESSAGE_BYTES).scoreBatch(cases, contextOf());
    expect(scorer.seen[0]).toBe(cases[0]);
  });
});
