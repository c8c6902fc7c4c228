import { basename } from "node:path";
import type { MetricReport, StartMethod } from "./messages.js";
import type { LoadedMetric, PoolOptions } from "./types.js";

/** How a metric's workers come to be. */
export interface StartFacts {
  readonly pythonVersion: string;
  readonly startMethod: StartMethod;
  readonly startMethodReason: string;
}

export function loadedMetric(report: MetricReport, facts: StartFacts): LoadedMetric {
  return {
    fingerprint: report.fingerprint,
    file: report.file,
    problems: report.problems,
    warnings: report.warnings,
    arguments: report.arguments,
    signature: report.signature,
    isAsync: report.is_async,
    rewardSpecJson: report.reward_spec_json,
    rewardWeights: report.reward_weights ?? undefined,
    loadMs: report.load_ms,
    ...facts,
  };
}

/** A file of which no interpreter could tell anything. */
export function unloadedMetric(
  { kind, file }: Pick<PoolOptions, "kind" | "file">,
  message: string,
  facts: StartFacts,
): LoadedMetric {
  return {
    fingerprint: "",
    file: basename(file),
    problems: [{ step: kind === "run" ? "run_file" : "metric_file", message, traceback: "" }],
    warnings: [],
    arguments: 0,
    signature: "",
    isAsync: false,
    rewardSpecJson: "",
    rewardWeights: undefined,
    loadMs: 0,
    ...facts,
  };
}

/** Why a process that loaded the metric anew cannot score with the others; `undefined` where it can. */
export function difference(current: LoadedMetric, report: MetricReport): string | undefined {
  const problem = report.problems[0];
  if (problem !== undefined)
    return `${current.file} no longer loads: ${problem.message}; mend it and reload the metric`;
  if (report.fingerprint === current.fingerprint) return undefined;
  return `${current.file} or a module beside it has changed on disk since it was loaded; reload the metric to score with what is there now`;
}
