import { Big } from "big.js";

import { ModelAccount } from "../../src/model/account.js";
import { Budget } from "../../src/model/budget.js";
import { ModelCallError } from "../../src/model/call_error.js";
import { ModelClient } from "../../src/model/client.js";
import { openCatalogue, Prices } from "../../src/model/prices.js";
import { FakeProvider, type FakeReply } from "./fake_provider.js";
import { RecordingLog } from "./log.js";

/** A client of a fake provider, with the real account. */
export async function fakeClient(replies: readonly FakeReply[], maxCostUsd?: string) {
  const provider = new FakeProvider(replies);
  const log = new RecordingLog();
  const catalogue = await openCatalogue();
  const budget = new Budget(maxCostUsd === undefined ? undefined : new Big(maxCostUsd), log);
  const account = new ModelAccount(() => Promise.resolve(new Prices(provider.baseUrl, [], catalogue)), budget);
  const models = { metricModel: "gpt-4o-mini", reflectionModel: undefined };
  return { client: new ModelClient({ provider, account, models, log }), provider, log };
}

export const QUESTION = { messages: [{ role: "user", content: "PASS or FAIL?" }] };

/** The error that a call must end with. */
export async function errorOf(call: Promise<unknown>): Promise<ModelCallError> {
  const outcome: unknown = await call.catch((error: unknown) => error);
  if (outcome instanceof ModelCallError) return outcome;
  throw new Error(`the call should have failed with a ModelCallError, and gave ${String(outcome)}`);
}
