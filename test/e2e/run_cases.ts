import type { CaseResult, Observation } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { type CaseInit, json, plain } from "./cases.js";
import { fileURLToPath } from "node:url";

/** The path of run code in test/fixtures/runs. */
export function runFixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/runs/${name}`, import.meta.url));
}

/** The options that make `does_what_it_is_told.py` the run code. */
export const TOLD_RUNS = ["--run", runFixture("does_what_it_is_told.py")] as const;

/** A case without an output whose run executes Python code; what that leaves in `output` is scored. */
export function runOf(code: string): CaseInit {
  return { input: json({ code }) };
}

/** What the sidecar measured of the run. */
export function observationOf(result: CaseResult | undefined): Observation {
  if (result?.observation === undefined) {
    throw new Error(`expected an observation, got ${JSON.stringify(result && plain(result))}`);
  }
  return result.observation;
}

/** How long the run took, in milliseconds. */
export function runMsOf(result: CaseResult | undefined): number {
  const { runMs, runNotMeasuredReason } = observationOf(result);
  if (runMs === undefined) throw new Error(`the run's time was not measured: ${runNotMeasuredReason}`);
  return runMs;
}

/** What the run returned. */
export function outputOf(result: CaseResult | undefined): unknown {
  const kind = result?.output?.kind;
  if (kind?.case !== "json") throw new Error(`expected an output, got ${JSON.stringify(result && plain(result))}`);
  return JSON.parse(kind.value) as unknown;
}
