import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { CaseGaps } from "../../../src/cli/cases/gaps.js";
import type { CaseErrorCode, CaseResult } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { CaseResultSchema, ModelUsageSchema, ObservationSchema } from "../../../src/gen/skynet/scoring/v1/case_pb.js";

/** A result with a score. */
export function scored(
  index: number,
  value: number,
  rest: { feedback?: string; scores?: Record<string, number>; id?: string; metricMs?: number } = {},
): CaseResult {
  const { feedback = "", scores = {}, id = "", metricMs = 1 } = rest;
  return create(CaseResultSchema, {
    id,
    index,
    outcome: { case: "score", value: { value, feedback, scores } },
    timing: { queuedMs: 0, metricMs },
  });
}

/** A result with an error. */
export function failed(index: number, code: CaseErrorCode, message = "it failed"): CaseResult {
  return create(CaseResultSchema, { index, outcome: { case: "error", value: { code, message } }, timing: {} });
}

/** A result with what was measured of its run. */
export function observed(index: number, observation: MessageInitShape<typeof ObservationSchema>): CaseResult {
  return { ...scored(index, 1), observation: create(ObservationSchema, { id: `obs-${index}`, ...observation }) };
}

/** A result whose metric has called a model. */
export function judged(index: number, usage: MessageInitShape<typeof ModelUsageSchema>): CaseResult {
  return { ...scored(index, 1), metricUsage: create(ModelUsageSchema, usage) };
}

/** Of a file whose cases have every column. */
export const NO_GAPS = new CaseGaps(
  { name: "cases.csv" },
  { input: undefined, expected: [], prediction: "output", id: undefined },
  false,
);
