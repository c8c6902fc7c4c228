import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import { cpuMs, descendants, endedChildrenCpuMs, machineCpuMs } from "../../bench/processes.js";

const children: ChildProcess[] = [];

afterEach(async () => {
  await Promise.all(children.splice(0).map(end));
});

describe.runIf(process.platform === "linux")("on Linux, where /proc tells", () => {
  test("finds children and theirs, parents first", async () => {
    const shell = await startShell('sh -c "echo ready; read line"; true');
    const found = descendants(shell);
    expect(found).toHaveLength(1);
    expect(descendants(process.pid)).toEqual(expect.arrayContaining([shell, ...found]));
    expect(descendants(process.pid).indexOf(shell)).toBeLessThan(descendants(process.pid).indexOf(found[0] ?? 0));
  });

  test("counts the CPU time of every thread, and of the machine", () => {
    const before = cpuMs(process.pid);
    const machineBefore = machineCpuMs();
    const used = process.cpuUsage();
    for (let spent = 0; spent < 50;) {
      const { user, system } = process.cpuUsage(used);
      spent = (user + system) / 1000;
    }
    expect(cpuMs(process.pid) - before).toBeGreaterThan(45);
    // Counted in ticks of 10 ms, on each core.
    expect(machineCpuMs() - machineBefore).toBeGreaterThan(20);
  });

  test("counts children that have ended apart", async () => {
    const shell = await startShell("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo done; read line");
    expect(endedChildrenCpuMs(shell)).toBeGreaterThan(0);
    expect(cpuMs(shell)).toBeLessThan(endedChildrenCpuMs(shell) + 20);
  });
});

/** Starts a shell script that prints a line when it has come where the test wants it, and then waits. */
async function startShell(script: string): Promise<number> {
  const child = spawn("sh", ["-c", script], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout, "data");
  if (child.pid === undefined) throw new Error("sh did not start");
  return child.pid;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.stdin?.end();
  child.kill("SIGKILL");
  await ended;
}
