import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";

/** One process, as /proc shows it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** The kernel's letter: `R` running or waiting for a core, `S` asleep, `Z` ended and not reaped. */
  readonly state: string;
  readonly command: string;
}

/**
 * Every living process whose environment holds `NAME=value`, the one that got it first included. What a process starts has
 * its environment, so this finds forks, subprocesses and daemons alike, whoever their parent is by now.
 */
export function processesWith(variable: string): ProcessEntry[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(`/proc/${pid}/environ`).split("\0").includes(variable))
    .map((pid) => readProcess(Number(pid)))
    .filter((entry) => entry !== undefined);
}

/** `undefined` where there is no such process; one that ended and was not reaped yet is there, in state `Z`. */
export function readProcess(pid: number): ProcessEntry | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === "") return undefined;
  // The command's name stands in brackets and may hold blanks and brackets itself.
  const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const command = read(`/proc/${pid}/cmdline`).split("\0").join(" ").slice(0, 120);
  return { pid, parent: Number(parent), state, command };
}

/** Whether a process runs; one that has ended does not, reaped or not. */
export function isAlive(pid: number): boolean {
  const state = readProcess(pid)?.state;
  return state !== undefined && state !== "Z" && state !== "X";
}

/** The most memory that a process has had resident so far, in bytes. */
export function peakMemory(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1];
  if (kilobytes === undefined) throw new Error(`process ${pid} is gone, or /proc does not tell its memory`);
  return Number(kilobytes) * 1024;
}

/** Bytes that a process has written so far, to files and sockets. */
export function bytesWritten(pid: number): number {
  return Number(/^wchar: (\d+)$/m.exec(read(`/proc/${pid}/io`))?.[1]);
}

/** CPU time of a process and of its children that have ended, in milliseconds, to the clock tick (10 ms). */
export function cpuMs(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

/** What a process can write to in its memory, a piece for each mapping. Fails where this process may not read it. */
export function readMemory(pid: number): string[] {
  const memory = openSync(`/proc/${pid}/mem`, "r");
  try {
    const lines = read(`/proc/${pid}/maps`).split("\n");
    return lines.flatMap((line) => {
      const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      return from === undefined || to === undefined ? [] : readMapping(memory, parseInt(from, 16), parseInt(to, 16));
    });
  } finally {
    closeSync(memory);
  }
}

/** Nothing where the kernel lets nobody read it. */
function readMapping(memory: number, from: number, to: number): string[] {
  const bytes = Buffer.alloc(to - from);
  try {
    return [bytes.toString("latin1", 0, readSync(memory, bytes, 0, bytes.length, from))];
  } catch {
    return [];
  }
}

/** Empty where the process is gone, or is none of ours. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
