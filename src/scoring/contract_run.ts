import { type Attempt, errorOf, sampleName } from "./contract_attempt.js";
import { spendingText } from "./contract_spending.js";
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
    const messages = [...new Set(faults.map(({ error }) => error.message))];
    const message = messages.map((said) => `${listed(samplesWith(said, faults))}: ${said}`).join("; ");
    return failed("run_return_value", message, { traceback: fault.error.traceback, durationMs });
  }
  const made = ran.length === first.length ? "every sample" : "every sample without one";
  const took = `${listed(times.map((ms) => String(Math.round(ms))))} ms`;
  const spent = spendingText(ran.flatMap(({ result: { observation } }) => observation?.usage ?? []));
  const cost = spent ?? "it made no model calls through the gateway";
  return passed("run_return_value", `run returned an output for ${made}, in ${took}; ${cost}`, { durationMs });
}

/** What kept a sample's output from being made; `undefined` where there is one. */
export function runError(attempt: Attempt): CaseError | undefined {
  const { isRun, output } = attempt.result;
  return isRun === true && output === undefined ? errorOf(attempt) : undefined;
}

interface Fault {
  readonly attempt: Attempt;
  readonly error: CaseError;
}

function samplesWith(message: string, faults: readonly Fault[]): string[] {
  return faults.filter(({ error }) => error.message === message).map(({ attempt }) => sampleName(attempt.sample));
}

/** "1", "1 and 2", "1, 2 and 3" */
function listed(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}
