import { expect, it } from "vitest";

import { CallFlight, TotalFlight } from "../../src/scoring/in_flight.js";

const limits = { callCases: 10, callBytes: 1000, totalBytes: 1500 };

/** Whether `promise` has resolved by now. */
async function isDone(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>((r) => setImmediate(r, false))]);
}

it("waits at the limit of cases until some are released", async () => {
  const call = new CallFlight(new TotalFlight(limits));
  call.add(10, 10);
  const room = call.room();
  expect(await isDone(room)).toBe(false);
  call.add(-1, -1);
  expect(await isDone(room)).toBe(true);
});

it("waits at the limit of bytes", async () => {
  const call = new CallFlight(new TotalFlight(limits));
  call.add(1, 5000);
  const room = call.room();
  expect(await isDone(room)).toBe(false);
  call.add(0, -4500);
  expect(await isDone(room)).toBe(true);
});

it("waits for other calls where all together have too much, but never with nothing of its own", async () => {
  const total = new TotalFlight(limits);
  const [slow, other, third] = [new CallFlight(total), new CallFlight(total), new CallFlight(total)];
  slow.add(1, 1500);
  other.add(1, 10);
  const room = other.room();
  expect(await isDone(room)).toBe(false);
  expect(await isDone(third.room())).toBe(true);
  slow.close();
  expect(await isDone(room)).toBe(true);
  expect(total.bytes).toBe(10);
});

it("lets go of whoever waits when the call closes", async () => {
  const call = new CallFlight(new TotalFlight(limits));
  call.add(10, 10);
  const room = call.room();
  call.close();
  expect(await isDone(room)).toBe(true);
});
