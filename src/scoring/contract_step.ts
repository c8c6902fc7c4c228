/** The steps of a contract check, in their order. */
export type ContractStep =
  | "metric_file"
  | "metric_function"
  | "reward_spec"
  | "sample_cases"
  | "run_return_value"
  | "metric_call"
  | "metric_return_value";

/** `skipped`: it needs something that is not there, or a step before it failed. */
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

/** What people call the steps, in their order. */
export const STEP_NAMES: Readonly<Record<ContractStep, string>> = {
  metric_file: "Metric file",
  metric_function: "Metric function",
  reward_spec: "Reward spec",
  sample_cases: "Sample cases",
  run_return_value: "Run return value",
  metric_call: "Metric call",
  metric_return_value: "Metric return value",
};

type Extra = Partial<Pick<ContractCheck, "warnings" | "traceback" | "durationMs">>;
const NOTHING_MORE = { warnings: [], traceback: "", durationMs: 0 };

/** A step that found nothing wrong. */
export function passed(step: ContractStep, message: string, extra: Extra = {}): ContractCheck {
  return { step, status: "passed", message, ...NOTHING_MORE, ...extra };
}

/** A step that found something wrong, and so fails the check. */
export function failed(step: ContractStep, message: string, extra: Extra = {}): ContractCheck {
  return { step, status: "failed", message, ...NOTHING_MORE, ...extra };
}

/** A step that could not be tried; `message` says why. */
export function skipped(step: ContractStep, message: string): ContractCheck {
  return { step, status: "skipped", message, ...NOTHING_MORE };
}

/** A score as people read it. */
export function rounded(value: number): number {
  return Number(value.toPrecision(6));
}
