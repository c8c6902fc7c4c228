import type { Case, JsonBytes } from "./case.js";
import { type Attempt, attemptName, errorOf, sampleName, scoreAgain, scoreFirst } from "./contract_attempt.js";
import { rewardParts, rewardWarnings } from "./contract_reward.js";
import { runCheck, runError, runObstacle } from "./contract_run.js";
import { spendingText } from "./contract_spending.js";
import { observedSample, sampleFault, type SampleSources } from "./contract_sample.js";
import {
  type ContractCheck,
  type ContractStatus,
  type ContractStep,
  failed,
  passed,
  rounded,
  skipped,
  STEP_NAMES,
} from "./contract_step.js";
import { callWarnings, giveUpWarnings, returnValueWarnings, sampleWarnings } from "./contract_warnings.js";
import type { CaseError } from "./result.js";
import type { MetricDescription, Scorer } from "./scorer.js";

export { type ContractCheck, type ContractStatus, type ContractStep, STEP_NAMES } from "./contract_step.js";

/** What a check needs of a scorer. */
export type CheckedScorer = Pick<Scorer, "describe" | "open" | "metricTimeoutMs" | "observations">;

/** What to check the metric on. */
export interface ContractSamples {
  /** The first `SAMPLE_LIMIT` of those given. */
  readonly samples: readonly Case[];
  /** How many were given. */
  readonly given: number;
  /** What to run for samples without an output; `undefined`: nothing. */
  readonly artifact: JsonBytes | undefined;
}

/** Samples that the metric is tried on; more are left out. */
export const SAMPLE_LIMIT = 3;

/**
 * Checks the loaded metric on samples, each run at most once and scored twice; gives each step as it ends. A metric that breaks the contract, or
 * that did not load, is a failed step and never an error. Throws `ScorerError` where the scorer closes or `signal` is aborted.
 */
export async function* checkContract(
  scorer: CheckedScorer,
  given: ContractSamples,
  signal: AbortSignal,
): AsyncGenerator<ContractCheck, void, undefined> {
  const metric = scorer.describe();
  const { samples, check } = samplesCheck(scorer, metric, given);
  const before = [...loadChecks(metric), check];
  yield* before;

  const run = runObstacle(metric, whyNot(before));
  if (run !== undefined) yield run;
  const why = whyNot(run === undefined ? before : [...before, run]);
  if (why !== undefined) {
    yield* skippedCalls(why);
    return;
  }
  const began = performance.now();
  const first = await scoreFirst(scorer, samples, given.artifact, signal);
  const ran = metric.runFile === "" ? undefined : runCheck(first);
  if (ran !== undefined) yield ran;
  const scorable = first.filter((attempt) => runError(attempt) === undefined);
  if (scorable.length === 0) {
    yield* skippedCalls(`${STEP_NAMES.run_return_value} failed on every sample`);
    return;
  }
  const attempts = [...scorable, ...(await scoreAgain(scorer, scorable, signal))];
  const durationMs = Math.max(0, performance.now() - began - (ran?.durationMs ?? 0));
  yield callCheck(attempts, scorer.metricTimeoutMs, durationMs);
  yield returnValueCheck(attempts, metric);
}

/** Why the steps after these cannot be tried; `undefined` where they can. */
function whyNot(before: readonly ContractCheck[]): string | undefined {
  const obstacle = before.find(
    ({ step, status }) => status === "failed" || (status === "skipped" && step === "sample_cases"),
  );
  if (obstacle === undefined) return undefined;
  return `${STEP_NAMES[obstacle.step]} ${obstacle.status === "failed" ? "failed" : "was skipped"}`;
}

function skippedCalls(why: string): ContractCheck[] {
  return [skipped("metric_call", why), skipped("metric_return_value", why)];
}

/** What all steps together say. */
export interface ContractVerdict {
  /** True where no step failed. */
  readonly passed: boolean;
  readonly counts: Readonly<Record<ContractStatus, number>>;
  readonly warnings: number;
}

/** What the checks come to: passed where none failed. */
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

interface CheckedSamples {
  /** Each with what was measured of it, where an observation belongs to it. */
  readonly samples: readonly Case[];
  readonly check: ContractCheck;
}

function samplesCheck(
  { observations }: CheckedScorer,
  { runFile }: MetricDescription,
  { samples, given, artifact }: ContractSamples,
): CheckedSamples {
  const used = samples.length;
  if (used === 0) {
    return { samples, check: skipped("sample_cases", `no sample cases were given; give up to ${SAMPLE_LIMIT}`) };
  }
  const began = performance.now();
  const sources: SampleSources = { artifact, hasRunCode: runFile !== "" };
  const read = samples.map((sample) => {
    const fault = sampleFault(sample, sources);
    return fault === undefined ? observedSample(sample, observations) : { sample, fault };
  });
  const faults = read.flatMap(({ sample, fault }) => (fault === undefined ? [] : [`${sampleName(sample)}: ${fault}`]));
  const extra = { warnings: sampleWarnings(samples), durationMs: performance.now() - began };
  const message = used < given ? `the first ${used} of ${given} are used` : `${used} can be given to the metric`;
  return {
    samples: read.map(({ sample }) => sample),
    check:
      faults.length > 0 ? failed("sample_cases", faults.join("; "), extra) : passed("sample_cases", message, extra),
  };
}

function callCheck(attempts: readonly Attempt[], timeoutMs: number, durationMs: number): ContractCheck {
  const faults = attempts.flatMap((attempt) => {
    const error = errorOf(attempt);
    return error === undefined || error.code === "METRIC_RETURN_VALUE" ? [] : [{ attempt, error }];
  });
  const extra = { warnings: callWarnings(attempts, timeoutMs), durationMs };
  const [first] = faults;
  if (first === undefined) {
    const spent = spendingText(attempts.flatMap(({ result }) => result.metricUsage ?? []));
    const cost = spent === undefined ? "" : `; ${spent}`;
    return passed("metric_call", `score returned on every sample, called twice on each${cost}`, extra);
  }
  const message = faults.map(({ attempt, error }) => `${attemptName(attempt)}: ${error.message}`).join("; ");
  const hint = first.error.code === "METRIC_EXCEPTION" ? `; ${exceptionAdvice(attempts, first.error)}` : "";
  return failed("metric_call", `${message}${hint}`, { ...extra, traceback: first.error.traceback });
}

/** The rule of docs/metrics.md; and where a metric may have missed the expected values, that nobody gave any. */
function exceptionAdvice(attempts: readonly Attempt[], { message }: CaseError): string {
  const rule = "return a low score where an output is bad, and raise only where a case cannot be judged";
  const mayMissThem = /^(TypeError|KeyError|AttributeError)\b/.test(message);
  const hasNone = attempts.every(({ sample: { expected } }) => expected === undefined || isNull(expected));
  return mayMissThem && hasNone
    ? `no sample has expected values, so that \`expected\` is None; give them (with --output-columns where cases come from a file); ${rule}`
    : rule;
}

function isNull(json: JsonBytes): boolean {
  return Buffer.from(json).toString("latin1").trim() === "null";
}

function returnValueCheck(attempts: readonly Attempt[], metric: MetricDescription): ContractCheck {
  const faults = attempts.filter((attempt) => errorOf(attempt)?.code === "METRIC_RETURN_VALUE");
  const scored = attempts.filter(({ result }) => result.outcome.kind === "score");
  const first = scored.filter(({ round }) => round === 1);
  const hasSpec = metric.rewardSpecJson !== "";
  const warnings = [...returnValueWarnings(scored, hasSpec), ...(hasSpec ? rewardWarnings(first) : [])];
  if (faults.length > 0) {
    const message = faults.map((attempt) => `${attemptName(attempt)}: ${errorOf(attempt)?.message ?? ""}`).join("; ");
    return failed("metric_return_value", message, { warnings });
  }
  if (scored.length === 0) return skipped("metric_return_value", `${STEP_NAMES.metric_call} failed on every sample`);
  const values = first.flatMap(({ result }) =>
    result.outcome.kind === "score" ? [rounded(result.outcome.value)] : [],
  );
  const found = hasSpec ? `\n${rewardParts(first).join("\n")}` : `; the scores are ${values.join(", ")}`;
  return passed("metric_return_value", `a score and side info with feedback${found}`, { warnings });
}
