import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";

/** What a process, with everything that it started, has used so far, in milliseconds. */
export interface CpuTimes {
  readonly cpuMs: number;
  /** How long its main thread was ready to run and waited for a core. A wait counts from its end. */
  readonly coreWaitMs: number;
  /** Whether any of its threads, or of what it started, runs or waits for a core at this moment. */
  readonly isRunnable: boolean;
}

/** A kernel's clock tick, in which `/proc/<pid>/stat` counts; 100 a second on every Linux that Node runs on. */
const TICK_MS = 10;
/** Of a process with more threads the files are not kept open. */
const MOST_OPEN_THREADS = 8;
/** More processes than this below one worker are not counted. */
const MOST_DESCENDANTS = 64;

const buffer = Buffer.alloc(4096);

/**
 * Reads the CPU time of a worker from the system while it runs, its own and that of processes that it started. The files stay open,
 * as this is read for each chunk; an open file of `/proc` stays with its process, whatever becomes of the id.
 */
export class CpuMeter {
  readonly #stat: number | undefined;
  readonly #schedstat: number | undefined;
  readonly #children: ChildrenFiles;

  constructor(private readonly pid: number) {
    this.#stat = open(`/proc/${pid}/stat`);
    this.#schedstat = open(`/proc/${pid}/schedstat`);
    this.#children = new ChildrenFiles(pid);
  }

  /** `undefined` where the system does not tell. */
  read(): CpuTimes | undefined {
    const stat = parseStat(readAt(this.#stat));
    if (stat === undefined) return undefined;
    const sched = parseSchedstat(readAt(this.#schedstat));
    // The one counts all threads, in ticks; the other the main thread, in nanoseconds.
    const ownMs = Math.max(stat.ownMs, sched?.cpuMs ?? 0);
    const descendants = this.#descendants(stat.threads);
    return {
      cpuMs: ownMs + stat.waitedForMs + descendants.cpuMs,
      coreWaitMs: sched?.coreWaitMs ?? 0,
      isRunnable: stat.isRunnable || descendants.isRunnable || (stat.threads > 1 && hasRunnableThread(this.pid)),
    };
  }

  close(): void {
    closeAll([this.#stat, this.#schedstat]);
    this.#children.close();
  }

  #descendants(threads: number): { cpuMs: number; isRunnable: boolean } {
    const first = this.#children.read(threads);
    let cpuMs = 0;
    let isRunnable = false;
    const found = [...first];
    for (let i = 0; i < found.length && i < MOST_DESCENDANTS; i++) {
      const pid = found[i] ?? 0;
      const stat = parseStat(readWhole(`/proc/${pid}/stat`));
      if (stat !== undefined) cpuMs += stat.ownMs + stat.waitedForMs;
      isRunnable ||= stat?.isRunnable === true;
      found.push(...childrenOf(pid));
    }
    return { cpuMs, isRunnable };
  }
}

/** What the threads of a process have started. The threads' files are found anew when one has come or gone. */
class ChildrenFiles {
  #fds: (number | undefined)[] = [];

  constructor(private readonly pid: number) {}

  /** The ids of all children of a process that has so many threads. */
  read(threads: number): number[] {
    if (threads > MOST_OPEN_THREADS) return childrenOf(this.pid);
    if (threads !== this.#fds.length) this.#open();
    let texts = this.#fds.map(tryReadAt);
    if (texts.includes(undefined)) {
      this.#open();
      texts = this.#fds.map(tryReadAt);
    }
    return texts.flatMap((text) => (text === undefined || text === "" ? [] : numbers(text)));
  }

  close(): void {
    closeAll(this.#fds);
    this.#fds = [];
  }

  #open(): void {
    this.close();
    this.#fds = threadsOf(this.pid).map((thread) => open(`/proc/${this.pid}/task/${thread}/children`));
  }
}

function closeAll(fds: readonly (number | undefined)[]): void {
  for (const fd of fds) if (fd !== undefined) closeSync(fd);
}

interface ProcessStat {
  readonly isRunnable: boolean;
  readonly ownMs: number;
  /** Of its children that have ended. */
  readonly waitedForMs: number;
  readonly threads: number;
}

/** `/proc/<pid>/stat`: the command's name stands in parentheses and may hold any. */
export function parseStat(text: string): ProcessStat | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = (field: number): number => Number(fields[field - 3]);
  const found = {
    isRunnable: fields[0] === "R",
    ownMs: (ticks(14) + ticks(15)) * TICK_MS,
    waitedForMs: (ticks(16) + ticks(17)) * TICK_MS,
    threads: ticks(20),
  };
  return Number.isFinite(found.ownMs + found.waitedForMs + found.threads) ? found : undefined;
}

/** `/proc/<pid>/schedstat`: nanoseconds on a core, nanoseconds waiting for one, time slices. */
export function parseSchedstat(text: string): { cpuMs: number; coreWaitMs: number } | undefined {
  const [onCore = NaN, waiting = NaN] = numbers(text);
  return Number.isFinite(onCore + waiting) ? { cpuMs: onCore / 1e6, coreWaitMs: waiting / 1e6 } : undefined;
}

/** Whether any thread of a process runs or waits for a core; `/proc/<pid>/stat` tells that of the main thread alone. */
function hasRunnableThread(pid: number): boolean {
  return threadsOf(pid).some((thread) => parseStat(readWhole(`/proc/${pid}/task/${thread}/stat`))?.isRunnable === true);
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // It is gone.
  }
}

/** Children of all threads of a process. */
function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) => numbers(readWhole(`/proc/${pid}/task/${thread}/children`)));
}

function numbers(text: string): number[] {
  return text.split(" ").map(Number.parseFloat).filter(Number.isFinite);
}

function open(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined;
  }
}

/** Empty where there is no such file, or its process is gone. */
function readAt(fd: number | undefined): string {
  return tryReadAt(fd) ?? "";
}

/** `undefined` where there is no such file, or its process or thread is gone. */
function tryReadAt(fd: number | undefined): string | undefined {
  if (fd === undefined) return undefined;
  try {
    return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
  } catch {
    return undefined;
  }
}

function readWhole(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
