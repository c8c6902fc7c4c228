import type { Case } from "./case.js";
import {
  type Attempt,
  callWarnings,
  giveUpWarnings,
  returnValueWarnings,
  sampleName,
  sampleWarnings,
} from "./contract_warnings.js";
import { sampleFault } from "./contract_sample.js";
import type { CaseError } from "./result.js";
import type { MetricDescription, Scorer } from "./scorer.js";

/** The steps of a contract check, in their order. */
export type ContractStep =
  | "metric_file"
  | "metric_function"
  | "reward_spec"
  | "sample_cases"
  | "run_return_value"
  | "metric_call"
  | "metric_return_value";

export type ContractStatus = "passed" | "failed" | "skipped";

/** The outcome of one step. */
export interface ContractCheck {
  readonly step: ContractStep;
  readonly status: ContractStatus;
  /** What was found; for a failed step what came, what was expected and how to mend it; for a skipped one why. */
  readonly message: string;
  /** What is allowed but probably not meant. */
  readonly warnings: readonly string[];
  /** The Python traceback behind a failure; may be empty. */
  readonly traceback: string;
  /** Wall time. */
  readonly durationMs: number;
}

/** What a check needs of a scorer. */
export type CheckedScorer = Pick<Scorer, "describe" | "open" | "metricTimeoutMs">;

/** What to check the metric on. */
export interface ContractSamples {
  /** The first `SAMPLE_LIMIT` of those given. */
  readonly samples: readonly Case[];
  /** How many were given. */
  readonly given: number;
  /** Whether there is run code for samples without an output. */
  readonly hasArtifact: boolean;
}

export const SAMPLE_LIMIT = 3;

export const STEP_NAMES: Readonly<Record<ContractStep, string>> = {
  metric_file: "Metric file",
  metric_function: "Metric function",
  reward_spec: "Reward spec",
  sample_cases: "Sample cases",
  run_return_value: "Run return value",
  metric_call: "Metric call",
  metric_return_value: "Metric return value",
};

/**
 * Checks the loaded metric on samples, each scored twice; gives each step as it ends. A metric that breaks the contract, or that
 * did not load, is a failed step and never an error. Throws `ScorerError` where the scorer closes or `signal` is aborted.
 */
export async function* checkContract(
  scorer: CheckedScorer,
  samples: ContractSamples,
  signal: AbortSignal,
): AsyncGenerator<ContractCheck, void, undefined> {
  const metric = scorer.describe();
  const before = [...loadChecks(metric), samplesCheck(samples), ...runChecks(samples)];
  yield* before;

  const obstacle = before.find(
    ({ step, status }) => status === "failed" || (status === "skipped" && step === "sample_cases"),
  );
  if (obstacle !== undefined) {
    const why = `${STEP_NAMES[obstacle.step]} ${obstacle.status === "failed" ? "failed" : "was skipped"}`;
    yield skipped("metric_call", why);
    yield skipped("metric_return_value", why);
    return;
  }
  const began = performance.now();
  const attempts = await scoreTwice(scorer, samples.samples, signal);
  const call = callCheck(attempts, scorer.metricTimeoutMs, performance.now() - began);
  yield call;
  yield returnValueCheck(attempts, metric);
}

/** What all steps together say. */
export interface ContractVerdict {
  /** True where no step failed. */
  readonly passed: boolean;
  readonly counts: Readonly<Record<ContractStatus, number>>;
  readonly warnings: number;
}

export function verdictOf(checks: readonly ContractCheck[]): ContractVerdict {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let warnings = 0;
  for (const check of checks) {
    counts[check.status] += 1;
    warnings += check.warnings.length;
  }
  return { passed: counts.failed === 0, counts, warnings };
}

function loadChecks(metric: MetricDescription): ContractCheck[] {
  const fileProblem =
    metric.problems.find(({ step }) => step === "metric_file") ??
    (metric.loaded || metric.problems.length > 0 ? undefined : { message: metric.loadError, traceback: "" });
  const warningsOf = (step: ContractStep): string[] =>
    metric.warnings.filter((warning) => warning.step === step).map(({ message }) => message);
  if (fileProblem !== undefined) {
    const why = `${STEP_NAMES.metric_file} failed`;
    return [
      failed("metric_file", fileProblem.message, { traceback: fileProblem.traceback, durationMs: metric.loadMs }),
      skipped("metric_function", why),
      skipped("reward_spec", why),
    ];
  }
  const check = (step: "metric_function" | "reward_spec", found: string, more: string[] = []): ContractCheck => {
    const warnings = [...warningsOf(step), ...more];
    const problem = metric.problems.find((one) => one.step === step);
    if (problem !== undefined) return failed(step, problem.message, { warnings, traceback: problem.traceback });
    return passed(step, found, { warnings });
  };
  const loaded = `${metric.file} loaded in ${Math.round(metric.loadMs)} ms under Python ${metric.pythonVersion}`;
  return [
    passed("metric_file", loaded, { warnings: warningsOf("metric_file"), durationMs: metric.loadMs }),
    check("metric_function", functionFound(metric)),
    check("reward_spec", rewardFound(metric), giveUpWarnings(metric.rewardWeights)),
  ];
}

function functionFound({ signature, arguments: count, isAsync }: MetricDescription): string {
  return `${isAsync ? "async " : ""}score${signature === "" ? "" : signature}, called with ${count} arguments`;
}

function rewardFound({ rewardWeights }: MetricDescription): string {
  if (rewardWeights === undefined) return "there is no REWARD_SPEC";
  const { accuracy, speed, cost } = rewardWeights;
  return `REWARD_SPEC weighs accuracy ${rounded(accuracy)}, speed ${rounded(speed)} and cost ${rounded(cost)}`;
}

function samplesCheck(given: ContractSamples): ContractCheck {
  if (given.samples.length === 0) {
    return skipped("sample_cases", `no sample cases were given; give up to ${SAMPLE_LIMIT}`);
  }
  const began = performance.now();
  const faults = given.samples.flatMap((sample) => {
    const fault = sampleFault(sample, given.hasArtifact);
    return fault === undefined ? [] : [`${sampleName(sample)}: ${fault}`];
  });
  const extra = { warnings: sampleWarnings(given.samples), durationMs: performance.now() - began };
  if (faults.length > 0) return failed("sample_cases", faults.join("; "), extra);
  const used = given.samples.length;
  const message =
    used < given.given ? `the first ${used} of ${given.given} are used` : `${used} can be given to the metric`;
  return passed("sample_cases", message, extra);
}

/** Only where there is run code, which cannot be run yet. */
function runChecks({ samples, hasArtifact }: ContractSamples): ContractCheck[] {
  if (!hasArtifact) return [];
  const needed = samples.filter(({ output }) => output === undefined);
  if (needed.length === 0) return [skipped("run_return_value", "every sample brings its own output")];
  const message = `running artifacts is not available yet, and ${needed.map(sampleName).join(", ")} has no output; run the artifact yourself and give its output`;
  return [failed("run_return_value", message)];
}

/** The second round repeats only what scored: a sample that took its whole timeout need not do so again. */
async function scoreTwice(scorer: CheckedScorer, samples: readonly Case[], signal: AbortSignal): Promise<Attempt[]> {
  const first = await scoreOnce(scorer, samples, 1, signal);
  const scored = first.filter(({ result }) => result.outcome.kind === "score").map(({ sample }) => sample);
  if (scored.length === 0) return first;
  return [...first, ...(await scoreOnce(scorer, scored, 2, signal))];
}

/** A call of its own: index and id stay those of the first round, on which a metric's random seed may depend. */
async function scoreOnce(
  scorer: CheckedScorer,
  samples: readonly Case[],
  round: Attempt["round"],
  signal: AbortSignal,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for await (const results of scorer.open(signal).score(oneBatch(samples))) {
    for (const result of results) {
      const sample = samples.find(({ index }) => index === result.index);
      if (sample !== undefined) attempts.push({ sample, round, result });
    }
  }
  return attempts.sort((a, b) => a.sample.index - b.sample.index);
}

async function* oneBatch(samples: readonly Case[]): AsyncGenerator<readonly Case[], void, undefined> {
  yield await Promise.resolve(samples);
}

function callCheck(attempts: readonly Attempt[], timeoutMs: number, durationMs: number): ContractCheck {
  const faults = attempts.flatMap((attempt) => {
    const error = errorOf(attempt);
    return error === undefined || error.code === "METRIC_RETURN_VALUE" ? [] : [{ attempt, error }];
  });
  const extra = { warnings: callWarnings(attempts, timeoutMs), durationMs };
  const [first] = faults;
  if (first === undefined) {
    return passed("metric_call", "score returned on every sample, called twice on each", extra);
  }
  const message = faults.map(({ attempt, error }) => `${attemptName(attempt)}: ${error.message}`).join("; ");
  const mend = "score must return a score and feedback for every case; what may go wrong in it, catch there";
  const hint = first.error.code === "METRIC_EXCEPTION" ? `; ${mend}` : "";
  return failed("metric_call", `${message}${hint}`, { ...extra, traceback: first.error.traceback });
}

function returnValueCheck(attempts: readonly Attempt[], metric: MetricDescription): ContractCheck {
  const faults = attempts.filter((attempt) => errorOf(attempt)?.code === "METRIC_RETURN_VALUE");
  const scored = attempts.filter(({ result }) => result.outcome.kind === "score");
  const warnings = returnValueWarnings(scored, metric.rewardSpecJson !== "");
  if (faults.length > 0) {
    const message = faults.map((attempt) => `${attemptName(attempt)}: ${errorOf(attempt)?.message ?? ""}`).join("; ");
    return failed("metric_return_value", message, { warnings });
  }
  if (scored.length === 0) return skipped("metric_return_value", `${STEP_NAMES.metric_call} failed on every sample`);
  const values = scored.flatMap(({ round, result }) =>
    round === 1 && result.outcome.kind === "score" ? [rounded(result.outcome.value)] : [],
  );
  return passed("metric_return_value", `a score and side info with feedback; the scores are ${values.join(", ")}`, {
    warnings,
  });
}

function errorOf({ result }: Attempt): CaseError | undefined {
  return result.outcome.kind === "error" ? result.outcome : undefined;
}

function attemptName({ sample, round }: Attempt): string {
  return round === 1 ? sampleName(sample) : `the second call on ${sampleName(sample)}`;
}

function rounded(value: number): number {
  return Number(value.toPrecision(6));
}

type Extra = Partial<Pick<ContractCheck, "warnings" | "traceback" | "durationMs">>;
const NOTHING_MORE = { warnings: [], traceback: "", durationMs: 0 };

function passed(step: ContractStep, message: string, extra: Extra = {}): ContractCheck {
  return { step, status: "passed", message, ...NOTHING_MORE, ...extra };
}

function failed(step: ContractStep, message: string, extra: Extra = {}): ContractCheck {
  return { step, status: "failed", message, ...NOTHING_MORE, ...extra };
}

function skipped(step: ContractStep, message: string): ContractCheck {
  return { step, status: "skipped", message, ...NOTHING_MORE };
}
