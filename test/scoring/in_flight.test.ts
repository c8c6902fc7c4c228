import { expect, it } from "vitest";

import { CallFlight, TotalFlight } from "../../src/scoring/in_flight.js";

const limits = { callCases: 10, callBytes: 1000, totalBytes: 1500, leastBytes: 100 };

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

it("lets a call have results made up to its share, and where all have too much a little", () => {
  const total = new TotalFlight(limits);
  const [hung, other] = [new CallFlight(total), new CallFlight(total)];
  expect([hung.mayRun(999), hung.mayRun(1000)]).toEqual([true, false]);
  hung.add(1, 1500);
  expect([0, 99, 100].map((standing) => other.mayRun(standing))).toEqual([true, true, false]);
  hung.close();
  expect(other.mayRun(100)).toBe(true);
});

it("lets calls that keep their results fill what there is, and then only the first of them go on", () => {
  const total = new TotalFlight(limits);
  const [first, second] = [new CallFlight(total), new CallFlight(total)];
  first.keepResults();
  second.keepResults();
  first.add(1, 700);
  second.add(1, 700);
  expect([first.mayRun(2000), second.mayRun(2000)]).toEqual([true, true]);
  second.add(1, 100);
  expect([first.mayRun(0), second.mayRun(0)]).toEqual([true, false]);
  first.close();
  expect(second.mayRun(0)).toBe(true);
  second.add(1, 1000);
  expect(second.mayRun(0)).toBe(true);
});

it("lets go of whoever waits when the call closes", async () => {
  const call = new CallFlight(new TotalFlight(limits));
  call.add(10, 10);
  const room = call.room();
  call.close();
  expect(await isDone(room)).toBe(true);
});
