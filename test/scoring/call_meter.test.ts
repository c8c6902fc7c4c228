import { Big } from "big.js";
import { expect, it } from "vitest";

import { Meter } from "../../src/model/meter.js";
import { NO_TOKENS } from "../../src/model/token_usage.js";
import { CallMeter } from "../../src/scoring/call_meter.js";

const CALL = { usage: { ...NO_TOKENS, promptTokens: 5 }, cost: { usd: new Big("0.5") } };

it("counts calls for itself and for the whole", () => {
  const total = new Meter();
  const calls = new CallMeter(total, "run");
  const counted = calls.begin();
  calls.meter.record(CALL);
  counted();
  expect(calls.usage()).toMatchObject({ calls: 1, promptTokens: 5, callsOfUnknownCost: 0, cost: CALL.cost });
  expect(total.usage()).toMatchObject({ calls: 1, promptTokens: 5 });
});

it("does not know the cost while a call is in flight, and says why", () => {
  const calls = new CallMeter(new Meter(), "metric");
  calls.meter.record(CALL);
  const counted = calls.begin();
  expect(calls.usage()).toMatchObject({
    calls: 2,
    callsOfUnknownCost: 1,
    cost: { usd: undefined, reason: "a model call was still in flight when the metric ended" },
  });
  calls.meter.record(CALL);
  counted();
  counted();
  expect(calls.usage()).toMatchObject({ calls: 2, cost: { usd: new Big(1) } });
});
