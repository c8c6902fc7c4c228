import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { CpuMeter, parseSchedstat, parseStat } from "../../src/worker/cpu.js";
import { openDescriptors, until } from "./real_pool.js";

test("the command's name may look like fields", () => {
  const stat = "12 (a) R 1 (b) S 1 12 12 0 -1 4194304 100 0 0 0 250 50 7 3 20 0 4 0 100 1000 10\n";
  expect(parseStat(stat)).toEqual({ isRunnable: false, ownMs: 3_000, waitedForMs: 100, threads: 4 });
});

test("what the system does not tell is undefined", () => {
  expect(parseStat("")).toBeUndefined();
  expect(parseSchedstat("")).toBeUndefined();
  expect(parseSchedstat("1500000 250000 3\n")).toEqual({ cpuMs: 1.5, coreWaitMs: 0.25 });
});

test.runIf(process.platform === "linux")("counts a process, and what it started, while they run", async () => {
  const before = openDescriptors();
  const child = spawn("sh", ["-c", "while :; do :; done & wait"], { stdio: "ignore", detached: true });
  const pid = child.pid ?? 0;
  const meter = new CpuMeter(pid);
  try {
    await until(() => (meter.read()?.cpuMs ?? 0) > 50, "the grandchild's CPU time");
  } finally {
    process.kill(-pid, "SIGKILL");
  }
  await new Promise((resolve) => child.once("close", resolve));
  expect(meter.read()).toBeUndefined();
  meter.close();
  await until(() => openDescriptors() === before, "its files to be closed");
});

test("a process that is not there has none", () => {
  const meter = new CpuMeter(2 ** 30);
  expect(meter.read()).toBeUndefined();
  meter.close();
});
