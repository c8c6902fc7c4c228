import { readdirSync, readFileSync } from "node:fs";

/** CPU time of a process that is alive, all its living threads, in milliseconds; the scheduler counts it in nanoseconds. */
export function cpuMs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => readThread(pid, thread))
    .reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0);
}

/** CPU time of children of a process that have ended and were waited for, in milliseconds, to the clock tick (10 ms). */
export function endedChildrenCpuMs(pid: number): number {
  const { childUserTicks, childSystemTicks } = readStat(pid);
  return (childUserTicks + childSystemTicks) * TICK_MS;
}

/** Children of a process, their children and so on, without the process itself, parents before children. */
export function descendants(pid: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const child = Number(name);
    try {
      parents.set(child, readStat(child).parent);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  const found: number[] = [];
  for (let generation = [pid]; generation.length > 0;) {
    const last = new Set(generation);
    generation = [...parents].filter(([, parent]) => last.has(parent)).map(([child]) => child);
    found.push(...generation);
  }
  return found;
}

/** CPU time that the whole machine has spent since it started, or that its host has kept from it, in milliseconds. */
export function machineCpuMs(): number {
  const [first = ""] = readFileSync("/proc/stat", "utf8").split("\n", 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = first
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) * TICK_MS;
}

/** USER_HZ, which Linux fixes at 100 on every architecture that Node runs on. */
const TICK_MS = 10;

function readThread(pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ", 1)[0]);
  } catch (error) {
    // A thread that has ended since the folder was listed.
    if (isGone(error)) return 0;
    throw error;
  }
}

function readStat(pid: number) {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command's name stands in brackets and may hold blanks and brackets itself: what counts comes after the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { parent: Number(fields[1]), childUserTicks: Number(fields[13]), childSystemTicks: Number(fields[14]) };
}

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH");
}
