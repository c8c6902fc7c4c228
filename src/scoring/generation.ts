import type { Log } from "../worker/log.js";
import { availableBytes } from "../worker/memory.js";
import type { LoadedMetric, OpenPool, Pool, PoolOptions, Printed, Worker } from "../worker/types.js";
import type { Call } from "./call.js";
import { FaultLog } from "./fault_log.js";
import type { TotalFlight } from "./in_flight.js";
import { Scheduler } from "./scheduler.js";
import type { MetricDescription } from "./scorer.js";
import { WorkerCount } from "./worker_count.js";

/** What every generation of a scorer has in common. */
export interface GenerationOptions {
  readonly pool: Omit<PoolOptions, "printed">;
  readonly metricTimeoutMs: number;
  readonly seed: bigint | undefined;
  readonly cores: number;
  readonly maxWorkers: number;
  readonly workers: number | undefined;
  readonly flight: TotalFlight;
  readonly openPool: OpenPool;
  readonly log: Log;
  readonly readyChanged: () => void;
}

/** One metric as it was loaded once, with its workers and the calls that it serves. */
export class Generation {
  #pool: Pool | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    readonly metric: MetricDescription,
    private readonly scheduler: Scheduler,
  ) {}

  /** Loads the metric. Never rejects because of the metric: what is wrong with it is told by `metric`. */
  static async load(options: GenerationOptions): Promise<Generation> {
    const scheduler = new Scheduler({
      metricTimeoutMs: options.metricTimeoutMs,
      seed: options.seed,
      count: new WorkerCount(options.cores, options.maxWorkers, options.workers),
      flight: options.flight,
      faults: new FaultLog(options.log),
      fits: workersThatFit(),
      readyChanged: options.readyChanged,
    });
    const printed = (line: Printed): void => {
      logPrinted(options.log, scheduler, line);
    };
    const { metric, pool } = await options.openPool({ ...options.pool, printed }, scheduler, options.log);
    const generation = new Generation(describe(metric), scheduler);
    generation.#pool = pool;
    if (pool !== undefined) scheduler.begin(pool);
    return generation;
  }

  get isReady(): boolean {
    return this.#pool !== undefined && this.scheduler.isReady;
  }

  get workerCount(): number {
    return this.#pool?.workers.size ?? 0;
  }

  get calls(): ReadonlySet<Call> {
    return this.scheduler.calls;
  }

  open(signal: AbortSignal): Call {
    return this.scheduler.open(this.metric, signal);
  }

  /** Another generation takes new calls; this one ends with its last. Resolves when nothing of it is left. */
  async retire(): Promise<void> {
    await Promise.all([...this.calls].map((call) => call.ended));
    await this.close();
  }

  /** Ends every call and every process. Resolves when nothing is left. */
  async close(): Promise<void> {
    for (const call of [...this.calls]) call.abandon();
    this.#closed ??= this.#pool?.close() ?? Promise.resolve();
    await this.#closed;
  }
}

function describe(metric: LoadedMetric): MetricDescription {
  const problem = metric.problems[0];
  if (problem === undefined) return { ...metric, loaded: true, loadError: "" };
  return { ...metric, fingerprint: "", loaded: false, loadError: problem.message };
}

/** Workers may use this share of the memory that is free, so that something is left for what they grow into. */
const MEMORY_SHARE = 0.8;

/** What memory allows changes slowly and costs to find out. */
const MEMORY_LOOK_MS = 1000;

/** How many workers fit into memory in all, by what those that there are use. */
function workersThatFit(): (workers: ReadonlySet<Worker>) => number | undefined {
  let lookedAt = -Infinity;
  let room: number | undefined;
  return (workers) => {
    const now = performance.now();
    if (now - lookedAt < MEMORY_LOOK_MS) return room;
    lookedAt = now;
    const sizes = [...workers].map((worker) => worker.privateBytes()).filter((size) => size !== undefined);
    const more = (availableBytes() * MEMORY_SHARE) / Math.max(...sizes, 1);
    room = sizes.length === 0 ? undefined : workers.size + Math.floor(more);
    return room;
  };
}

function logPrinted(log: Log, scheduler: Scheduler, { worker, stream, text, chunk, position }: Printed): void {
  const item =
    chunk === undefined || position === undefined ? undefined : scheduler.caseInHand(worker, chunk, position);
  const place = item === undefined ? { chunk } : { case: item.id, index: item.index };
  log.info({ worker, stream, ...place }, text);
}
