import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Backoff } from "../../src/worker/backoff.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Fails so often, each start made after the last failure. */
function fail(backoff: Backoff, times: number): number[] {
  return Array.from({ length: times }, () => {
    backoff.failed(backoff.stamp());
    return backoff.waitMs();
  });
}

test("the first failure costs nothing, then the wait doubles from 10 ms to 30 s", () => {
  expect(fail(new Backoff(), 15)).toEqual([
    0, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 20_480, 30_000, 30_000,
  ]);
});

test("starts made together count once", () => {
  const backoff = new Backoff();
  const stamps = Array.from({ length: 64 }, () => backoff.stamp());
  for (const stamp of stamps) backoff.failed(stamp);
  expect(backoff.waitMs()).toBe(0);
  expect(fail(backoff, 1)).toEqual([10]);
});

test("a success ends the row, also for those that were started in it", () => {
  const backoff = new Backoff();
  fail(backoff, 9);
  const old = backoff.stamp();
  expect(backoff.succeeded(old)).toBe(true);
  expect(backoff.succeeded(old)).toBe(false);
  expect(backoff.waitMs()).toBe(0);
  backoff.failed(old);
  expect(backoff.waitMs()).toBe(0);
});

test("a success of what was started before the last failure ends nothing", () => {
  const backoff = new Backoff();
  const first = backoff.stamp();
  fail(backoff, 1);
  const second = backoff.stamp();
  fail(backoff, 4);
  expect([backoff.succeeded(first), backoff.succeeded(second)]).toEqual([false, false]);
  expect(backoff.waitMs()).toBe(80);
  expect(backoff.succeeded(backoff.stamp())).toBe(true);
});

test("the wait passes with time", () => {
  const backoff = new Backoff();
  fail(backoff, 4);
  vi.advanceTimersByTime(15);
  expect(backoff.waitMs()).toBe(25);
  vi.advanceTimersByTime(100);
  expect(backoff.waitMs()).toBe(0);
});

test("the late failure of an early start does not shorten the wait", () => {
  const backoff = new Backoff();
  const early = backoff.stamp();
  fail(backoff, 5);
  backoff.failed(early);
  expect(backoff.waitMs()).toBe(80);
});
