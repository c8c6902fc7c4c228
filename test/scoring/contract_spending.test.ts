import { Big } from "big.js";
import { expect, it } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { NO_TOKENS } from "../../src/model/token_usage.js";
import { spendingText } from "../../src/scoring/contract_spending.js";

it("adds up what is known, and says what is not, and why", () => {
  const known = used("0.00004086");
  const unknown = used(undefined);
  expect(spendingText([])).toBeUndefined();
  expect(spendingText([new Meter().usage()])).toBeUndefined();
  expect(spendingText([known])).toBe("its 1 model call cost $0.00004086");
  expect(spendingText([known, known])).toBe("its 2 model calls cost $0.00008172");
  expect(spendingText([known, unknown])).toBe(
    "of its 2 model calls 1 cost $0.00004086; what 1 cost was not measured: the answer has no usage",
  );
  expect(spendingText([unknown, unknown])).toBe(
    "what its 2 model calls cost was not measured: the answer has no usage",
  );
});

function used(usd: string | undefined): ReturnType<Meter["usage"]> {
  const meter = new Meter();
  const cost = usd === undefined ? { usd: undefined, reason: "the answer has no usage" } : { usd: new Big(usd) };
  meter.record({ usage: NO_TOKENS, cost });
  return meter.usage();
}
