import type { Case } from "./case.js";
import { type Attempt, sampleName } from "./contract_attempt.js";
import { rounded } from "./contract_step.js";
import type { MetricDescription } from "./scorer.js";

/*
 * What the contract check warns of: it is allowed, but hardly meant. Each text is one line.
 */

/** Shorter feedback tells an optimizer nothing. */
const SHORT_FEEDBACK_CHARACTERS = 15;

/** A mute or lazy output that is instant and free earns the weights of speed and cost whole. */
export function giveUpWarnings(weights: MetricDescription["rewardWeights"]): string[] {
  if (weights === undefined) return [];
  const { speed, cost } = weights;
  const earned = rounded(speed + cost);
  if (earned === 0) return [];
  return [
    `giving up pays: an instant, free and wrong output would earn ${earned} (speed ${rounded(speed)} + cost ${rounded(cost)}); ` +
      "lower these weights where that is more than a wrong output is worth",
  ];
}

/** What is odd about the samples themselves. */
export function sampleWarnings(samples: readonly Case[]): string[] {
  const without = samples.filter(({ expected }) => expected === undefined || isNull(expected));
  if (without.length === 0) return [];
  const whose = without.length === samples.length ? "every sample" : without.map(sampleName).join(", ");
  return [`${whose} comes without an expected value; the metric gets None for it`];
}

/** What is odd about how the metric was called: samples that took over half of `timeoutMs`. */
export function callWarnings(attempts: readonly Attempt[], timeoutMs: number): string[] {
  const slow = attempts.filter(({ result }) => result.outcome.kind === "score" && result.metricMs > timeoutMs / 2);
  return firstOfEachSample(slow).map(
    ({ sample, result }) =>
      `${sampleName(sample)} took ${seconds(result.metricMs)}, over half of the metric's timeout of ${seconds(timeoutMs)}; a slower case will be ended`,
  );
}

/** `scored`: the attempts that gave a score. */
export function returnValueWarnings(scored: readonly Attempt[], hasRewardSpec: boolean): string[] {
  const first = scored.flatMap(({ round, sample, result }) =>
    round === 1 && result.outcome.kind === "score"
      ? [{ sample, value: result.outcome.value, feedback: decoder.decode(result.outcome.feedback) }]
      : [],
  );
  const under = first.filter(({ value }) => value < 1);
  return [
    ...under.flatMap(feedbackWarnings),
    ...sameFeedbackWarnings(under),
    ...disagreementWarnings(scored),
    ...(hasRewardSpec ? [] : first.flatMap(rangeWarnings)),
  ];
}

interface Scored {
  readonly sample: Case;
  readonly value: number;
  readonly feedback: string;
}

function feedbackWarnings({ sample, value, feedback }: Scored): string[] {
  const length = Array.from(feedback.trim()).length;
  if (length >= SHORT_FEEDBACK_CHARACTERS) return [];
  const what = length === 0 ? "no feedback" : `only ${JSON.stringify(feedback)} as feedback`;
  return [
    `${sampleName(sample)} scored ${rounded(value)} with ${what}; say what is wrong and what a correct output looks like`,
  ];
}

function sameFeedbackWarnings(under: readonly Scored[]): string[] {
  const [one, ...others] = under;
  if (one === undefined || others.length === 0 || one.feedback.trim() === "") return [];
  if (others.some(({ feedback }) => feedback !== one.feedback)) return [];
  return [
    `all ${under.length} samples that scored under 1 got the same feedback; it should say what is wrong with each output`,
  ];
}

function disagreementWarnings(scored: readonly Attempt[]): string[] {
  const warnings: string[] = [];
  for (const { sample, round, result } of scored) {
    const again = scored.find((other) => other.round === 2 && other.sample.index === sample.index)?.result;
    if (round === 2 || result.outcome.kind !== "score" || again?.outcome.kind !== "score") continue;
    const [a, b] = [result.outcome.value, again.outcome.value];
    if (a !== b) {
      warnings.push(
        `${sampleName(sample)} scored ${a} and, called again, ${b}; a metric that disagrees with itself hides small improvements (--seed may help)`,
      );
    }
  }
  return warnings;
}

function rangeWarnings({ sample, value }: Scored): string[] {
  if (value >= 0 && value <= 1) return [];
  return [`${sampleName(sample)} scored ${value}, outside 0..1; engines take 1 for a perfect score`];
}

function firstOfEachSample(attempts: readonly Attempt[]): Attempt[] {
  return attempts.filter(
    ({ sample }, place) => attempts.findIndex((one) => one.sample.index === sample.index) === place,
  );
}

function isNull(bytes: Uint8Array): boolean {
  return bytes.length < 64 && decoder.decode(bytes).trim() === "null";
}

function seconds(ms: number): string {
  return `${rounded(ms / 1000)} s`;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
