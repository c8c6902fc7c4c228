import { Big } from "big.js";

import type { ModelUsage } from "../../gen/skynet/scoring/v1/case_pb.js";

/** Adds up what the model calls of cases used and cost, either of their runs or of the metric. */
export class Spending {
  /** Cases that were measured, or should have been. */
  cases = 0;
  /** Those whose cost was not measured. */
  notMeasured = 0;
  /** Why, for the first of them; empty where nothing was said. */
  reason = "";
  calls = 0;
  promptTokens = 0;
  completionTokens = 0;
  #usd = new Big(0);

  /** `usage`: of one case; `undefined` where it made no call. `usd`: `undefined` where it was not measured. */
  add(usage: ModelUsage | undefined, usd: number | undefined, reason = ""): void {
    this.cases += 1;
    this.calls += usage?.calls ?? 0;
    this.promptTokens += usage?.promptTokens ?? 0;
    this.completionTokens += usage?.completionTokens ?? 0;
    if (usd !== undefined) {
      // A double's shortest decimal is what the sidecar measured; so the sum is exact.
      if (usd !== 0) this.#usd = this.#usd.plus(usd);
      return;
    }
    if (this.notMeasured === 0) this.reason = reason;
    this.notMeasured += 1;
  }

  /** US dollars of the cases whose cost was measured. */
  get usd(): number {
    return this.#usd.toNumber();
  }

  /** Whether there was anything to pay for. */
  get isAny(): boolean {
    return this.calls > 0 || this.notMeasured > 0;
  }
}

/** For a line that has little room: `$0.0123`, `≥ $0.0123` where some of it is not known, `$?` where nothing is. */
export function shortCost({ usd, cases, notMeasured }: Spending): string {
  if (notMeasured === cases) return "$?";
  return `${notMeasured === 0 ? "" : "≥"}$${usd.toFixed(usd > 0 && usd < 0.001 ? 5 : 4)}`;
}

/** What was spent, in one line. */
export function costText({ usd, cases, notMeasured, calls, promptTokens, completionTokens }: Spending): string {
  const cost = notMeasured === cases ? "not measured" : dollars(usd);
  if (calls === 0) return `${cost} (no model calls)`;
  return `${cost} (${counted(calls, "model call")}, ${number(promptTokens)} tokens in, ${number(completionTokens)} out)`;
}

/** For how many cases the cost is not known, and why; `undefined` where it is for all. */
export function notMeasuredText({ cases, notMeasured, reason }: Spending): string | undefined {
  if (notMeasured === 0) return undefined;
  return `not measured for ${number(notMeasured)} of ${counted(cases, "case")}: ${reason === "" ? COMMON_REASONS : reason}`;
}

/** Results do not tell why the cost of a judge is not known. */
const COMMON_REASONS =
  "a model has no price (give it by --prices FILE), an answer has no usage, or a call was cut off before its answer";

/** The same for machines; `usd` is null where nothing was measured. */
export function spendingJson({ usd, cases, notMeasured, calls, promptTokens, completionTokens }: Spending): object {
  return {
    usd: cases > 0 && notMeasured === cases ? null : usd,
    cases,
    cases_not_measured: notMeasured,
    calls,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
  };
}

/** As many digits as say something: model calls cost from fractions of a thousandth of a cent up. */
function dollars(usd: number): string {
  if (usd === 0) return "$0";
  if (usd >= 1) return `$${usd.toFixed(4)}`;
  return `$${usd >= 0.0001 ? usd.toFixed(6) : usd.toFixed(9)}`;
}

function number(value: number): string {
  return value.toLocaleString("en");
}

function counted(value: number, what: string): string {
  return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}
