import { expect, it } from "vitest";

import { Tally } from "../../../src/cli/score/tally.js";
import { CaseErrorCode } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { judged, failed, observed, scored } from "./results.js";

it("keeps the five lowest, equal ones in the order of the cases, whatever order they come in", () => {
  const tally = new Tally();
  const values = [0.5, 0, 1, 0, 0.2, 0.2, 0.2, 0.1];
  for (const index of [6, 2, 0, 3, 7, 5, 1, 4]) tally.add(scored(index, values[index] ?? NaN));
  expect(tally.lowest.map(({ index }) => index)).toEqual([1, 3, 7, 4, 5]);
});

it("counts errors by their code and keeps the first of each", () => {
  const tally = new Tally();
  tally.add(failed(3, CaseErrorCode.METRIC_TIMEOUT, "too long"));
  tally.add(failed(4, CaseErrorCode.METRIC_TIMEOUT));
  tally.add(failed(5, CaseErrorCode.METRIC_CRASHED));
  tally.add(scored(6, 0));
  expect([...tally.errors]).toEqual([
    ["METRIC_TIMEOUT", { count: 2, first: { index: 3, id: "", message: "too long" } }],
    ["METRIC_CRASHED", { count: 1, first: { index: 5, id: "", message: "it failed" } }],
  ]);
  expect([tally.results, tally.errorCount, tally.score.count]).toEqual([4, 3, 1]);
});

it("takes an error for no score, and a case that the metric never saw for no time", () => {
  const tally = new Tally();
  tally.add(scored(0, 1, { scores: { format: 0.5 }, metricMs: 8 }));
  tally.add(failed(1, CaseErrorCode.INVALID_CASE));
  expect(tally.score.mean).toBe(1);
  expect(tally.metricMs.at(0, 1)).toEqual([8, 8]);
  expect([...tally.named].map(([name, { mean, count }]) => [name, mean, count])).toEqual([["format", 0.5, 1]]);
});

it("adds up decimally, so that many small costs come to their sum", () => {
  const tally = new Tally();
  for (let index = 0; index < 10; index += 1) tally.add(observed(index, { runMs: 1, costUsd: 0.1 }));
  tally.add(judged(10, { calls: 1, costUsd: 0.000055 }));
  tally.add(judged(11, { calls: 1, costUsd: 1e-9 }));
  expect(tally.runCost.usd).toBe(1);
  expect(tally.metricCost.usd).toBe(0.000055001);
});

it("keeps the first reason why a cost was not measured", () => {
  const tally = new Tally();
  tally.add(observed(0, { runMs: 1, costNotMeasuredReason: "one" }));
  tally.add(observed(1, { runMs: 1, costNotMeasuredReason: "two" }));
  tally.add(observed(2, { costUsd: 0.5 }));
  expect(tally.runCost).toMatchObject({ cases: 3, notMeasured: 2, reason: "one", usd: 0.5 });
  expect([tally.runsOfUnknownTime, tally.runMs.at(1)]).toEqual([1, [1]]);
});
