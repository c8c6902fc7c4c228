import { SEPARATOR } from "../worker/chunk.js";
import type { Death, Row } from "../worker/types.js";
import type { Case, JsonBytes } from "./case.js";
import { parseJsonText } from "./json_text.js";
import type { CaseError, CaseErrorCode, Outcome, Score } from "./result.js";

/** What a worker's row says of the metric. */
export function rowOutcome(row: Row): Outcome {
  switch (row.kind) {
    case "score":
      return scored(row);
    case "invalid_case":
      return invalidCase(text(row.text));
    case "metric_exception":
      return caseError("METRIC_EXCEPTION", text(row.text), text(row.detail));
    case "metric_return_value":
      return caseError("METRIC_RETURN_VALUE", text(row.text), text(row.detail));
    case "ran":
      return caseError("METRIC_RETURN_VALUE", "the process that runs the metric answered as one that runs an artifact");
  }
}

/**
 * What a run worker's row says: the output, or why there is none. Run code owns its process, so that nothing in it is believed unread, nor
 * taken at any length.
 */
export function runOutcome(row: Row | undefined, maxOutputBytes: number): JsonBytes | CaseError {
  switch (row?.kind) {
    case "ran": {
      const bytes = row.text.length;
      if (bytes > maxOutputBytes) return caseError("RUN_RETURN_VALUE", outputTooLarge(bytes, maxOutputBytes));
      return isJson(row.text) ? row.text : strayFrameOutcome();
    }
    case "invalid_case":
      return invalidCase(cutText(row.text));
    case "metric_exception":
      return caseError("RUN_EXCEPTION", cutText(row.text), cutText(row.detail, MAX_TRACEBACK_BYTES));
    case "metric_return_value":
      return caseError("RUN_RETURN_VALUE", cutText(row.text), cutText(row.detail, MAX_TRACEBACK_BYTES));
    case "score":
    case undefined:
      return strayFrameOutcome();
  }
}

/** What an honest process never sends. */
export function strayFrameOutcome(): CaseError {
  return caseError(
    "RUN_RETURN_VALUE",
    "the run's process answered with something that is not JSON; return a value that JSON can hold from run(artifact, input), and write to no descriptor that run code did not open",
  );
}

/** Python cuts before that; only a forged row is longer. */
const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_TRACEBACK_BYTES = 256 * 1024;

function cutText(bytes: Uint8Array, most = MAX_MESSAGE_BYTES): string {
  return bytes.length <= most ? text(bytes) : `${text(bytes.subarray(0, most))} ... [cut]`;
}

function outputTooLarge(bytes: number, most: number): string {
  return `the output takes ${bytes} bytes of JSON, and at most ${most} are allowed; return less from run(artifact, input)`;
}

/** As Python's `json` reads it: `NaN` and the infinities are numbers. */
function isJson(bytes: Uint8Array): boolean {
  try {
    parseJsonText(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Why a case cannot even be given to a worker; `undefined` where it can. `hasRuns`: whether there is run code. */
export function caseFault(item: Case, hasRuns: boolean): CaseError | undefined {
  if (item.values !== undefined) return undefined;
  if (item.fault !== undefined) return invalidCase(item.fault);
  if (item.input === undefined) return invalidCase("the case has no input; give `input` as a JSON object");
  if (item.output === undefined) {
    if (item.artifact === undefined) {
      return invalidCase("the case has no output; give `output` as any JSON value, null included");
    }
    if (!hasRuns) {
      return invalidCase(
        "the case has no output and there is no run code; give `output`, or start the sidecar with --run run.py",
      );
    }
    if (item.observationId !== "") {
      return invalidCase("the case has an observation but no output; the sidecar measures what it runs itself");
    }
  }
  return (
    payloadFault("input", item.input) ??
    payloadFault("output", item.output) ??
    payloadFault("expected", item.expected) ??
    payloadFault("artifact", item.artifact)
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

/** The run overran. */
export function runTimeoutOutcome(timeoutMs: number): CaseError {
  return caseError(
    "RUN_TIMEOUT",
    `the run took longer than its timeout of ${timeoutMs / 1000} s on this case and was ended; make it faster, or give --run-timeout more seconds (at most 600)`,
  );
}

/** The run's process died. */
export function runCrashOutcome(death: Death): CaseError {
  return caseError(
    "RUN_CRASHED",
    `the process that ran the artifact died: ${howItDied(death)}; the sidecar's log holds what it printed last`,
  );
}

/** No run worker could be had for the case. */
export function runUnavailableOutcome(reason: string): CaseError {
  return caseError("RUN_CRASHED", `no process could be started to run the artifact: ${reason}`);
}

/** The case itself is at fault. */
export function invalidCase(message: string): CaseError {
  return caseError("INVALID_CASE", message);
}

/** No worker could be had for the case. */
export function unavailableOutcome(reason: string): CaseError {
  return caseError("METRIC_CRASHED", `no process could be started to run the metric: ${reason}`);
}

function howItDied(death: Death): string {
  if (death.breach !== undefined) {
    return `it was killed, since ${death.breach}; write to no descriptor that the code did not open`;
  }
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
    return invalidCase(`\`${name}\` is an empty text, which is not JSON; leave it out, or give a JSON value`);
  }
  const at = bytes.indexOf(SEPARATOR);
  if (at < 0) return undefined;
  return invalidCase(
    `\`${name}\` is not JSON: the control character U+001E stands at byte ${at}; write it as \\u001e inside a string`,
  );
}

function caseError(code: CaseErrorCode, message: string, traceback = ""): CaseError {
  return { kind: "error", code, message: message.replace(LINE_BREAKERS, " "), traceback };
}

/** Python has folded them already; this guards the promise that a message is one line, whoever wrote the row. */
const LINE_BREAKERS = /[\p{Cc}\u2028\u2029]/gu;

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** What an outcome costs in memory until it is taken, in bytes. */
export function outcomeBytes(outcome: Outcome): number {
  if (outcome.kind === "error") return 2 * (outcome.message.length + outcome.traceback.length) + OUTCOME_OVERHEAD_BYTES;
  return outcome.feedback.length + outcome.sideInfo.length + outcome.scores.length * 60 + OUTCOME_OVERHEAD_BYTES;
}

const OUTCOME_OVERHEAD_BYTES = 200;
