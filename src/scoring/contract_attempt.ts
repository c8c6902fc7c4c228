import type { Case, JsonBytes } from "./case.js";
import type { CaseError, CaseResult } from "./result.js";
import type { Scorer } from "./scorer.js";

/** One call of the metric on one sample. */
export interface Attempt {
  readonly sample: Case;
  readonly round: 1 | 2;
  readonly result: CaseResult;
}

/** How people speak of a sample: its place from 1, and its id. */
export function sampleName({ index, id }: Case): string {
  return id === "" ? `sample ${index + 1}` : `sample ${index + 1} (${JSON.stringify(id)})`;
}

/** How messages call an attempt. */
export function attemptName({ sample, round }: Attempt): string {
  return round === 1 ? sampleName(sample) : `the second call on ${sampleName(sample)}`;
}

/** Why an attempt has no score; `undefined` where it has one. */
export function errorOf({ result }: Attempt): CaseError | undefined {
  return result.outcome.kind === "error" ? result.outcome : undefined;
}

/** Scores each sample; those without output are run before, with the artifact. */
export function scoreFirst(
  scorer: Pick<Scorer, "open">,
  samples: readonly Case[],
  artifact: JsonBytes | undefined,
  signal: AbortSignal,
): Promise<Attempt[]> {
  const cases = artifact === undefined ? samples : samples.map((sample) => ({ ...sample, artifact }));
  return scoreOnce(scorer, cases, 1, signal);
}

/**
 * Scores again what scored before: a sample that took its whole timeout need not do so again. What was run is not run again; the metric gets the
 * same output and the same measurements.
 */
export async function scoreAgain(
  scorer: Pick<Scorer, "open">,
  first: readonly Attempt[],
  signal: AbortSignal,
): Promise<Attempt[]> {
  const scored = first.filter(({ result }) => result.outcome.kind === "score");
  if (scored.length === 0) return [];
  const cases = scored.map(({ sample, result: { output, observation } }) => ({
    ...sample,
    output: sample.output ?? output,
    ...(observation === undefined ? {} : { observed: observation }),
  }));
  return await scoreOnce(scorer, cases, 2, signal);
}

/** A call of its own: index and id stay the same in each, as a metric's random seed may depend on them. */
async function scoreOnce(
  scorer: Pick<Scorer, "open">,
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
