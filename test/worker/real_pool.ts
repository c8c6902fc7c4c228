import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openPool } from "../../src/worker/pool.js";
import type { ChunkCase, LoadedMetric, Pool, PoolOptions, Printed, Row, Worker } from "../../src/worker/types.js";
import { RecordingListener, RecordingLog } from "./recording_listener.js";

/** The path of a metric in test/fixtures/metrics. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/metrics/${name}`, import.meta.url));
}

/** A pool with real Python processes, and what it tells. */
export class RealPool {
  readonly listener = new RecordingListener();
  readonly log = new RecordingLog();
  readonly printed: Printed[] = [];
  #metric: LoadedMetric | undefined;
  #pool: Pool | undefined;
  #taken = 0;

  static async open(file: string, options: Partial<PoolOptions> = {}): Promise<RealPool> {
    const opened = new RealPool();
    const { listener, log, printed } = opened;
    const all: PoolOptions = {
      kind: "metric",
      file,
      environment: {},
      python: undefined,
      startMethod: "auto",
      loadTimeoutMs: 20_000,
      maxRowBytes: 64 * 1024 ** 2,
      printed: (line) => printed.push(line),
      ...options,
    };
    ({ metric: opened.#metric, pool: opened.#pool } = await openPool(all, listener, log));
    return opened;
  }

  get metric(): LoadedMetric {
    if (this.#metric === undefined) throw new Error("the metric was not loaded");
    return this.#metric;
  }

  get pool(): Pool {
    if (this.#pool === undefined) throw new Error(`no pool: ${JSON.stringify(this.metric.problems)}`);
    return this.#pool;
  }

  get hasPool(): boolean {
    return this.#pool !== undefined;
  }

  /** Wants so many workers and waits for them. */
  async start(count = 1): Promise<Worker[]> {
    this.pool.want(count);
    const workers = [];
    for (let n = 0; n < count; n++) workers.push(await this.nextIdle());
    return workers;
  }

  /** Starts one worker. */
  async startOne(): Promise<Worker> {
    this.pool.want(1);
    return this.nextIdle();
  }

  /** The next worker that is told idle and was not yet returned. */
  async nextIdle(): Promise<Worker> {
    await this.listener.until(() => this.listener.idled.length > this.#taken, "an idle worker");
    const worker = this.listener.idled[this.#taken++];
    if (worker === undefined) throw new Error("no worker is idle");
    return worker;
  }

  /** Scores a chunk and waits until the worker is idle again; returns its rows. */
  async score(worker: Worker, cases: readonly ChunkCase[]): Promise<Row[]> {
    const before = this.listener.told.length;
    const idled = this.listener.idled.filter((other) => other === worker).length;
    worker.run(cases);
    const again = (): boolean => this.listener.idled.filter((other) => other === worker).length > idled;
    await this.listener.until(again, `worker ${worker.number} to be idle again`);
    this.#taken = this.listener.idled.length;
    return this.listener.told.slice(before).flatMap((told) => (told.worker === worker ? told.rows : []));
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }
}

export function caseOf(output: unknown, input: object = {}, expected?: object): ChunkCase {
  return {
    input: Buffer.from(JSON.stringify(input)),
    output: Buffer.from(JSON.stringify(output)),
    expected: expected === undefined ? undefined : Buffer.from(JSON.stringify(expected)),
    seed: undefined,
    observation: undefined,
  };
}

export function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

/** Descriptors that this process has open; `undefined` where the system does not tell. */
export function openDescriptors(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}

/** Processes, zombies included, whose command line names one of the sidecar's private folders, or that are children of this process. */
export function pythonProcesses(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => isPython(pid));
}

function isPython(pid: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
    const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
    return parent === String(process.pid) && command.includes("skynet-");
  } catch {
    return false; // It is gone.
  }
}

/** Whether a process lives; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !["Z", "X"].includes(stat.slice(stat.lastIndexOf(")") + 2)[0] ?? "");
  } catch {
    return false;
  }
}

/** Resolves when `condition` holds. Rejects after 20 s. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited 20 s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
