import { create } from "@bufbuild/protobuf";

import {
  type Case as CaseMessage,
  CaseErrorCode as ErrorCodeMessage,
  CaseErrorSchema,
  type CaseResult as CaseResultMessage,
  CaseResultSchema,
  type JsonValue as JsonValueMessage,
  JsonValueSchema,
  type ModelUsage as ModelUsageMessage,
  ModelUsageSchema,
  type Observation as ObservationMessage,
  ObservationSchema,
  ScoreSchema,
} from "../gen/skynet/scoring/v1/case_pb.js";
import type { ScoreBatchRequest, ScoreRequest } from "../gen/skynet/scoring/v1/score_service_pb.js";
import type { Case } from "../scoring/case.js";
import type { MeteredUsage } from "../model/meter.js";
import type { CaseErrorCode, CaseResult, Observed, Outcome } from "../scoring/result.js";
import { artifactBytes, payloadOfMessage } from "./json_value.js";
import type { CaseBatch } from "./score_service.js";

/** The domain's error codes as the API numbers them. */
export const ERROR_CODES: Readonly<Record<CaseErrorCode, ErrorCodeMessage>> = {
  INVALID_CASE: ErrorCodeMessage.INVALID_CASE,
  METRIC_EXCEPTION: ErrorCodeMessage.METRIC_EXCEPTION,
  METRIC_RETURN_VALUE: ErrorCodeMessage.METRIC_RETURN_VALUE,
  METRIC_TIMEOUT: ErrorCodeMessage.METRIC_TIMEOUT,
  METRIC_CRASHED: ErrorCodeMessage.METRIC_CRASHED,
  RUN_EXCEPTION: ErrorCodeMessage.RUN_EXCEPTION,
  RUN_TIMEOUT: ErrorCodeMessage.RUN_TIMEOUT,
  RUN_CRASHED: ErrorCodeMessage.RUN_CRASHED,
  RUN_RETURN_VALUE: ErrorCodeMessage.RUN_RETURN_VALUE,
};

/** The cases of a request; the first gets the index `firstIndex`. */
export function batchOfMessage(request: ScoreRequest | ScoreBatchRequest, firstIndex: number): CaseBatch {
  const artifact = artifactBytes(payloadOfMessage("artifact", request.artifact));
  const cases = request.cases.map((item, place) => caseOfMessage(item, firstIndex + place));
  return artifact === undefined ? cases : cases.map((item) => ({ ...item, artifact }));
}

/** One case; what its payloads cannot carry over is its `fault`. */
export function caseOfMessage(message: CaseMessage, index: number): Case {
  const input = payloadOfMessage("input", message.input);
  const output = payloadOfMessage("output", message.output);
  const expected = payloadOfMessage("expected", message.expected);
  const fault = input.fault ?? output.fault ?? expected.fault;
  const item = {
    id: message.id,
    index,
    input: input.bytes,
    output: output.bytes,
    expected: expected.bytes,
    observationId: message.observationId,
  };
  return fault === undefined ? item : { ...item, fault };
}

/** One result as a message. */
export function messageOfResult(result: CaseResult): CaseResultMessage {
  const { id, index, queuedMs, metricMs } = result;
  const runMs = runTime(result);
  const timing = { queuedMs, metricMs, ...(runMs === undefined ? {} : { runMs }) };
  return create(CaseResultSchema, { id, index, outcome: outcomeOf(result.outcome), timing, ...measuredOf(result) });
}

/** How long the sidecar's own run took; `undefined` where it ran none. */
export function runTime({ isRun, observation }: CaseResult): number | undefined {
  return isRun === true ? observation?.runMs : undefined;
}

/** The parts of a result that only runs and model calls bring. */
export function measuredOf({ observation, metricUsage, output }: CaseResult): MeasuredFields {
  return {
    ...(observation === undefined ? {} : { observation: messageOfObservation(observation) }),
    ...(metricUsage === undefined ? {} : { metricUsage: messageOfUsage(metricUsage) }),
    ...(output === undefined ? {} : { output: jsonValue(output) }),
  };
}

type MeasuredFields = Partial<Pick<CaseResultMessage, "observation" | "metricUsage" | "output">>;

function jsonValue(bytes: Uint8Array): JsonValueMessage {
  return create(JsonValueSchema, { kind: { case: "json", value: decoder.decode(bytes) } });
}

/** What was measured of a run. */
export function messageOfObservation({ id, runMs, usage }: Observed): ObservationMessage {
  const { usd, reason } = usage.cost;
  return create(ObservationSchema, {
    id,
    runMs,
    ...(usd === undefined ? { costNotMeasuredReason: reason } : { costUsd: usd.toNumber() }),
    ...(usage.calls === 0 ? {} : { usage: messageOfUsage(usage) }),
  });
}

/** What model calls used. */
export function messageOfUsage(usage: MeteredUsage): ModelUsageMessage {
  const { usd } = usage.cost;
  return create(ModelUsageSchema, {
    calls: uint32(usage.calls),
    promptTokens: uint32(usage.promptTokens),
    cachedPromptTokens: uint32(usage.cachedPromptTokens),
    completionTokens: uint32(usage.completionTokens),
    reasoningTokens: uint32(usage.reasoningTokens),
    ...(usd === undefined ? {} : { costUsd: usd.toNumber() }),
  });
}

/** A provider may claim any count, and a message that cannot be written would cost a whole call. */
function uint32(count: number): number {
  return Math.min(count, 2 ** 32 - 1);
}

function outcomeOf(outcome: Outcome): CaseResultMessage["outcome"] {
  if (outcome.kind === "error") {
    const value = create(CaseErrorSchema, { code: ERROR_CODES[outcome.code], message: outcome.message });
    return { case: "error", value };
  }
  const value = create(ScoreSchema, {
    value: outcome.value,
    feedback: decoder.decode(outcome.feedback),
    // `fromEntries` makes own properties of any name, `__proto__` included.
    scores: Object.fromEntries(outcome.scores),
    sideInfoJson: decoder.decode(outcome.sideInfo),
  });
  return { case: "score", value };
}

/** A leading U+FEFF is the metric's own. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
