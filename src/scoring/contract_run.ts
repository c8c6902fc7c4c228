import { type Attempt, errorOf, sampleName } from "./contract_attempt.js";
import { type ContractCheck, failed, passed, skipped } from "./contract_step.js";
import type { CaseError } from "./result.js";
import type { MetricDescription } from "./scorer.js";

/** Why the step "Run return value" cannot be tried; `undefined` where it can, or where there is no run code. */
export function runObstacle(metric: MetricDescription, why: string | undefined): ContractCheck | undefined {
  if (metric.runFile === "") return undefined;
  const problem = metric.problems.find(({ step }) => step === "run_file");
  if (problem !== undefined) return failed("run_return_value", problem.message, { traceback: problem.traceback });
  return why === undefined ? undefined : skipped("run_return_value", why);
}

/** What came of running those samples that had no output. */
export function runCheck(first: readonly Attempt[]): ContractCheck {
  const ran = first.filter(({ result }) => result.isRun === true);
  if (ran.length === 0) return skipped("run_return_value", "every sample brings its own output");
  const times = ran.flatMap(({ result: { observation } }) => (observation === undefined ? [] : [observation.runMs]));
  const durationMs = Math.max(0, ...times);
  const faults = ran.flatMap((attempt) => {
    const error = runError(attempt);
    return error === undefined ? [] : [{ attempt, error }];
  });
  const [fault] = faults;
  if (fault !== undefined) {
    const message = faults.map(({ attempt, error }) => `${sampleName(attempt.sample)}: ${error.message}`).join("; ");
    return failed("run_return_value", message, { traceback: fault.error.traceback, durationMs });
  }
  const took = times.map((ms) => Math.round(ms)).join(", ");
  return passed("run_return_value", `run returned an output for every sample without one, in ${took} ms`, {
    durationMs,
  });
}

/** What kept a sample's output from being made; `undefined` where there is one. */
export function runError(attempt: Attempt): CaseError | undefined {
  const { isRun, output } = attempt.result;
  return isRun === true && output === undefined ? errorOf(attempt) : undefined;
}
