import type { Case } from "../scoring/case.js";
import { outcomeBytes } from "../scoring/outcome.js";
import type { CaseResult } from "../scoring/result.js";
import type { Scorer } from "../scoring/scorer.js";
import type { CallContext } from "./call_context.js";
import { CallError } from "./errors.js";

/** The cases of one request, `index` counting through the whole call; its artifact stands in each. */
export type CaseBatch = readonly Case[];

/** Scores cases with the metric that is current when a call begins. */
export class ScoreService {
  constructor(
    private readonly scorer: Scorer,
    /** What one message may hold. */
    private readonly maxMessageBytes: number,
  ) {}

  /** Scores a stream. Each array holds what was ready, in the order in which cases ended. */
  score(requests: AsyncIterable<CaseBatch>, context: CallContext): AsyncIterable<readonly CaseResult[]> {
    return this.#score(requests, context, false);
  }

  /** Scores one batch; results stand in the order of its cases. Throws `CallError` `too_large` where they do not fit into one message. */
  async scoreBatch(request: CaseBatch, context: CallContext): Promise<readonly CaseResult[]> {
    const results: CaseResult[] = [];
    let bytes = 0;
    for await (const ready of this.#score(only(request), context, true)) {
      for (const result of ready) bytes += outcomeBytes(result.outcome) + (result.output?.length ?? 0);
      if (bytes > this.maxMessageBytes) throw tooLarge(this.maxMessageBytes, results.length + ready.length, request);
      results.push(...ready);
    }
    return results.sort((a, b) => a.index - b.index);
  }

  #score(
    requests: AsyncIterable<CaseBatch>,
    context: CallContext,
    keepsResults: boolean,
  ): AsyncIterable<readonly CaseResult[]> {
    const call = this.scorer.open(context.signal);
    context.sendFingerprint(call.metric.fingerprint);
    return call.score(requests, keepsResults);
  }
}

function tooLarge(maxMessageBytes: number, results: number, cases: CaseBatch): CallError {
  return new CallError(
    "too_large",
    `${results} of the ${cases.length} results take more than the ${maxMessageBytes} bytes that one message may have; send fewer cases in a ScoreBatch call, use Score, which sends results in as many messages as they need, or raise --max-message-bytes`,
  );
}

async function* only(request: CaseBatch): AsyncGenerator<CaseBatch, void, undefined> {
  yield await Promise.resolve(request);
}
