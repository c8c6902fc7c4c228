import { Big } from "big.js";

import type { MeteredUsage } from "../model/meter.js";

/** What "its" model calls cost, as part of a sentence; `undefined` where there were none. */
export function spendingText(usages: readonly MeteredUsage[]): string | undefined {
  const calls = usages.reduce((sum, usage) => sum + usage.calls, 0);
  if (calls === 0) return undefined;
  const known = usages.reduce((sum, usage) => sum.plus(usage.knownUsd), new Big(0));
  const unknown = usages.reduce((sum, usage) => sum + usage.callsOfUnknownCost, 0);
  const made = `${calls} model call${calls === 1 ? "" : "s"}`;
  if (unknown === 0) return `its ${made} cost ${dollars(known)}`;
  const reason = usages.find(({ cost }) => cost.reason !== undefined)?.cost.reason ?? "";
  if (unknown === calls) return `what its ${made} cost was not measured: ${reason}`;
  return `of its ${made} ${calls - unknown} cost ${dollars(known)}; what ${unknown} cost was not measured: ${reason}`;
}

/** An amount with as many digits as it has, down to a billionth. */
export function dollars(usd: Big): string {
  return `$${usd.round(9).toFixed()}`;
}
