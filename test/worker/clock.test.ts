import { expect, test } from "vitest";
import { WorkerClock } from "../../src/worker/clock.js";

const now = (): number => Number(process.hrtime.bigint());

test("of the same clock the offset is exact, however long hello took", () => {
  const sentNs = now() - 200e6;
  const clock = new WorkerClock(sentNs, performance.now());
  expect(Math.abs(clock.local(now()) - performance.now())).toBeLessThan(5);
});

test.each([
  ["behind", -3_600e9],
  ["ahead", 3_600e9],
])("of another clock, an hour %s, hello tells it", (_, offsetNs) => {
  const clock = new WorkerClock(now() + offsetNs, performance.now());
  expect(Math.abs(clock.local(now() + offsetNs) - performance.now())).toBeLessThan(50);
});
