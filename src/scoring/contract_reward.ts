import { type Attempt, sampleName } from "./contract_attempt.js";
import { dollars } from "./contract_spending.js";
import { rounded } from "./contract_step.js";
import type { Observed } from "./result.js";

const PARTS = ["accuracy", "speed", "cost"] as const;

/**
 * What each part of a `REWARD_SPEC` scored on each sample, and from what; what of it could not be measured. A line a sample. `scored`: one
 * attempt a sample.
 */
export function rewardParts(scored: readonly Attempt[]): string[] {
  return scored.map((attempt) => `${sampleName(attempt.sample)} scored ${scoreOf(attempt)}`);
}

/** A `REWARD_SPEC` that the metric's return value does not come from. */
export function rewardWarnings(scored: readonly Attempt[]): string[] {
  const without = scored.filter((attempt) => PARTS.some((part) => partOf(attempt, part) === undefined));
  if (without.length === 0) return [];
  const whose = without.map(({ sample }) => sampleName(sample)).join(", ");
  return [
    `REWARD_SPEC is defined, and the scores of ${whose} lack its parts; return reward(REWARD_SPEC, accuracy, feedback)`,
  ];
}

function scoreOf(attempt: Attempt): string {
  const { outcome, observation } = attempt.result;
  const value = outcome.kind === "score" ? rounded(outcome.value) : 0;
  const parts = PARTS.flatMap((part) => {
    const scored = partOf(attempt, part);
    return scored === undefined ? [] : [`${part} ${rounded(scored)}${measured(observation, part)}`];
  });
  if (parts.length === 0) return String(value);
  const unseen = observation === undefined ? ` (${UNSEEN})` : "";
  return `${value}: ${parts.join(", ")}${unseen}`;
}

const UNSEEN = "time and cost were not measured: the sample brings its output, without an observation";

function partOf({ result: { outcome } }: Attempt, part: string): number | undefined {
  return outcome.kind === "score" ? outcome.scores.find(([name]) => name === part)?.[1] : undefined;
}

/** In brackets after a part: what was measured, or why it was not. */
function measured(observation: Observed | undefined, part: (typeof PARTS)[number]): string {
  if (observation === undefined || part === "accuracy") return "";
  if (part === "speed") return ` (${rounded(Math.round(observation.runMs * 10) / 10)} ms)`;
  const { usd, reason } = observation.usage.cost;
  return ` (${usd === undefined ? `not measured: ${reason}` : dollars(usd)})`;
}
