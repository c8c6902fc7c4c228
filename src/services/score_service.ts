import type { Case } from "../scoring/case.js";
import type { CaseResult } from "../scoring/result.js";
import type { Scorer } from "../scoring/scorer.js";
import type { CallContext } from "./call_context.js";

/** The cases of one request, `index` counting through the whole call; its artifact stands in each. */
export type CaseBatch = readonly Case[];

/** Scores cases with the metric that is current when a call begins. */
export class ScoreService {
  constructor(private readonly scorer: Scorer) {}

  /** Scores a stream. Each array holds what was ready, in the order in which cases ended. */
  score(requests: AsyncIterable<CaseBatch>, context: CallContext): AsyncIterable<readonly CaseResult[]> {
    const call = this.scorer.open(context.signal);
    context.sendFingerprint(call.metric.fingerprint);
    return call.score(requests);
  }

  /** Scores one batch; results stand in the order of its cases. */
  async scoreBatch(request: CaseBatch, context: CallContext): Promise<readonly CaseResult[]> {
    const results: CaseResult[] = [];
    for await (const ready of this.score(only(request), context)) results.push(...ready);
    return results.sort((a, b) => a.index - b.index);
  }
}

async function* only(request: CaseBatch): AsyncGenerator<CaseBatch, void, undefined> {
  yield await Promise.resolve(request);
}
