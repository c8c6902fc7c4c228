import type { Death, Row } from "../worker/types.js";
import type { Case } from "./case.js";
import type { CaseError, CaseErrorCode, Outcome, Score } from "./result.js";

/** Separates the values of a chunk; JSON text cannot hold it. */
const SEPARATOR = 0x1e;

/** What a worker's row says. */
export function rowOutcome(row: Row): Outcome {
  switch (row.kind) {
    case "score":
      return scored(row);
    case "invalid_case":
      return caseError("INVALID_CASE", text(row.text));
    case "metric_exception":
      return caseError("METRIC_EXCEPTION", text(row.text), text(row.detail));
    case "metric_return_value":
      return caseError("METRIC_RETURN_VALUE", text(row.text));
  }
}

/** Why a case cannot even be given to a worker; `undefined` where it can. */
export function caseFault(item: Case): CaseError | undefined {
  if (item.fault !== undefined) return caseError("INVALID_CASE", item.fault);
  if (item.observationId !== "") {
    return caseError(
      "INVALID_CASE",
      "the case has an `observation_id`, and observations are not available yet; leave it out",
    );
  }
  if (item.input === undefined) {
    return caseError("INVALID_CASE", "the case has no input; give `input` as a JSON object");
  }
  if (item.output === undefined) {
    return caseError("INVALID_CASE", "the case has no output; give `output` as any JSON value, null included");
  }
  return (
    payloadFault("input", item.input) ?? payloadFault("output", item.output) ?? payloadFault("expected", item.expected)
  );
}

/** The metric overran. */
export function timeoutOutcome(timeoutMs: number): CaseError {
  return caseError(
    "METRIC_TIMEOUT",
    `the metric ran past its timeout of ${timeoutMs / 1000} s on this case and was ended; make it faster, or give --metric-timeout more seconds (at most 600)`,
  );
}

/** The worker died with the case in hand. */
export function crashOutcome(death: Death): CaseError {
  return caseError(
    "METRIC_CRASHED",
    `the process that ran the metric died on this case: ${howItDied(death)}; the sidecar's log holds what it printed last`,
  );
}

/** No worker could be had for the case. */
export function unavailableOutcome(reason: string): CaseError {
  return caseError("METRIC_CRASHED", `no process could be started to run the metric: ${reason}`);
}

function howItDied(death: Death): string {
  switch (death.signal) {
    case undefined:
      return `it exited with code ${death.exitCode ?? "unknown"}`;
    case "SIGKILL":
      return "it was killed by SIGKILL (by a person, or by the system for want of memory)";
    default:
      return `it was killed by ${death.signal}`;
  }
}

function scored(row: Row): Score {
  return {
    kind: "score",
    value: row.value,
    feedback: row.text,
    scores: row.detail.length === 0 ? NO_SCORES : namedScores(row.detail),
    sideInfo: row.sideInfo,
  };
}

const NO_SCORES: Score["scores"] = [];

/** The worker wrote them and has checked them: pairs of a string and a finite number. */
function namedScores(bytes: Uint8Array): Score["scores"] {
  return JSON.parse(text(bytes)) as [string, number][];
}

function payloadFault(name: string, bytes: Uint8Array | undefined): CaseError | undefined {
  if (bytes === undefined) return undefined;
  if (bytes.length === 0) {
    return caseError(
      "INVALID_CASE",
      `\`${name}\` is an empty text, which is not JSON; leave it out, or give a JSON value`,
    );
  }
  const at = bytes.indexOf(SEPARATOR);
  if (at < 0) return undefined;
  return caseError(
    "INVALID_CASE",
    `\`${name}\` is not JSON: the control character U+001E stands at byte ${at}; write it as \\u001e inside a string`,
  );
}

function caseError(code: CaseErrorCode, message: string, traceback = ""): CaseError {
  return { kind: "error", code, message, traceback };
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** What a result costs in memory until it is taken, in bytes. */
export function outcomeBytes(outcome: Outcome): number {
  if (outcome.kind === "error") return 2 * (outcome.message.length + outcome.traceback.length) + OUTCOME_OVERHEAD_BYTES;
  return outcome.feedback.length + outcome.sideInfo.length + outcome.scores.length * 60 + OUTCOME_OVERHEAD_BYTES;
}

const OUTCOME_OVERHEAD_BYTES = 200;
