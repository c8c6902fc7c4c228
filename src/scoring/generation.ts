import type { Log } from "../worker/log.js";
import { availableBytes } from "../worker/memory.js";
import type { LoadedMetric, OpenPool, Pool, PoolOptions, Printed, Worker } from "../worker/types.js";
import { Call, type CallHost } from "./call.js";
import type { Case } from "./case.js";
import { FaultLog } from "./fault_log.js";
import type { TotalFlight } from "./in_flight.js";
import type { ModelCalls } from "./model_calls.js";
import type { Observations } from "./observations.js";
import type { Observed } from "./result.js";
import { pastProxies, withoutSecrets } from "./run_environment.js";
import { Runs } from "./runs.js";
import { Scheduler } from "./scheduler.js";
import type { MetricDescription } from "./scorer.js";
import { WorkerCount } from "./worker_count.js";

/** What every generation of a scorer has in common. */
export interface GenerationOptions {
  readonly pool: Omit<PoolOptions, "printed" | "kind" | "file" | "environment">;
  readonly metric: string;
  readonly metricTimeoutMs: number;
  readonly seed: bigint | undefined;
  readonly cores: number;
  readonly maxWorkers: number;
  readonly workers: number | undefined;
  /** `undefined`: artifacts are not run. */
  readonly run: RunOptions | undefined;
  readonly models: ModelCalls;
  /** A model was chosen for the metric, which so will wait for it. */
  readonly isJudge: boolean;
  readonly observations: Observations;
  readonly flight: TotalFlight;
  readonly openPool: OpenPool;
  readonly log: Log;
  readonly readyChanged: () => void;
}

/** How artifacts are run. */
export interface RunOptions {
  /** The file that defines `run(artifact, input)`. */
  readonly file: string;
  readonly timeoutMs: number;
  /** Runs in progress at most. */
  readonly maxRuns: number;
  /** What run code's environment must not have, such as a provider's key: `undefined` takes a variable out. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where run code reaches models. */
  readonly gatewayUrl: () => string;
}

/** One metric (and run code) as loaded once, with its workers and the calls that it serves. */
export class Generation implements CallHost {
  readonly calls = new Set<Call>();
  #closed: Promise<void> | undefined;

  private constructor(
    readonly metric: MetricDescription,
    private readonly options: GenerationOptions,
    private readonly scheduler: Scheduler,
    private readonly runs: Runs | undefined,
    private readonly metricPool: Pool | undefined,
    private readonly runPool: Pool | undefined,
  ) {}

  /** Loads the metric and the run code. Never rejects because of them: what is wrong is told by `metric`. */
  static async load(options: GenerationOptions): Promise<Generation> {
    const faults = new FaultLog(options.log);
    const scheduler = new Scheduler({
      metricTimeoutMs: options.metricTimeoutMs,
      seed: options.seed,
      count: new WorkerCount(options.cores, options.maxWorkers, options.workers, options.isJudge),
      models: options.models,
      faults,
      fits: workersThatFit(),
      readyChanged: options.readyChanged,
    });
    const runs = options.run === undefined ? undefined : openRuns(options.run, options, faults);
    const [metric, run] = await Promise.all([
      loadMetric(options, scheduler),
      options.run === undefined || runs === undefined ? undefined : loadRun(options, options.run, runs),
    ]);
    const description = describe(metric.metric, run?.metric);
    const generation = new Generation(description, options, scheduler, runs, metric.pool, run?.pool);
    if (!description.loaded) {
      await generation.close();
      return generation;
    }
    if (metric.pool !== undefined) scheduler.begin(metric.pool);
    if (run?.pool !== undefined) runs?.begin(run.pool);
    return generation;
  }

  get isReady(): boolean {
    return this.metric.loaded && this.#closed === undefined && this.scheduler.isReady && this.runs?.isReady !== false;
  }

  /** Workers of the metric. */
  get workerCount(): number {
    return this.metric.loaded ? (this.metricPool?.workers.size ?? 0) : 0;
  }

  open(signal: AbortSignal): Call {
    const call = new Call(this.metric, this, this.options.flight, signal);
    if (!call.isOver) this.calls.add(call);
    return call;
  }

  /** Another generation takes new calls; this one ends with its last. Resolves when nothing of it is left. */
  async retire(): Promise<void> {
    await Promise.all([...this.calls].map((call) => call.ended));
    await this.close();
  }

  /** Ends every call and every process. Resolves when nothing is left. */
  async close(): Promise<void> {
    for (const call of [...this.calls]) call.abandon();
    this.#closed ??= Promise.all([this.metricPool?.close(), this.runPool?.close()]).then(() => undefined);
    await this.#closed;
  }

  // From calls.

  get hasRuns(): boolean {
    return this.runs !== undefined;
  }

  queued(call: Call): void {
    if (call.queue.length > 0) this.scheduler.queued(call);
    if (call.runQueue.length > 0) this.runs?.queued(call);
  }

  over(call: Call): void {
    this.calls.delete(call);
    this.scheduler.over(call);
    this.runs?.over(call);
  }

  observed(item: Case): Observed {
    return this.options.observations.use(item.observationId);
  }
}

function openRuns(run: RunOptions, options: GenerationOptions, faults: FaultLog): Runs {
  const { observations, readyChanged } = options;
  const { timeoutMs, maxRuns, gatewayUrl } = run;
  return new Runs({
    runTimeoutMs: timeoutMs,
    maxRuns,
    maxOutputBytes: options.pool.maxRowBytes,
    observations,
    gatewayUrl,
    faults,
    readyChanged,
  });
}

function loadMetric(options: GenerationOptions, scheduler: Scheduler): ReturnType<OpenPool> {
  const { log, openPool, pool, metric: file } = options;
  const printed = (line: Printed): void => {
    const { worker, chunk, position } = line;
    const isPlaced = chunk !== undefined && position !== undefined;
    logPrinted(log, line, isPlaced ? scheduler.caseInHand(worker, chunk, position) : undefined);
  };
  return openPool({ ...pool, kind: "metric", file, environment: {}, printed }, scheduler, log);
}

function loadRun(options: GenerationOptions, run: RunOptions, runs: Runs): ReturnType<OpenPool> {
  const { log, openPool, pool } = options;
  const printed = (line: Printed): void => {
    logPrinted(log, line, runs.caseInHand(line.worker));
  };
  const inherited = process.env;
  const environment = { ...withoutSecrets(inherited), ...run.environment, ...pastProxies(inherited, run.environment) };
  return openPool({ ...pool, kind: "run", file: run.file, environment, printed }, runs, log);
}

function describe(metric: LoadedMetric, run: LoadedMetric | undefined): MetricDescription {
  const problems = [...metric.problems, ...(run?.problems ?? [])];
  const [problem] = problems;
  return {
    ...metric,
    problems,
    fingerprint: problem === undefined ? metric.fingerprint : "",
    loaded: problem === undefined,
    loadError: problem?.message ?? "",
    runFile: run?.file ?? "",
  };
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

function logPrinted(
  log: Log,
  { worker, stream, text, chunk }: Printed,
  item: { id: string; index: number } | undefined,
) {
  const place = item === undefined ? { chunk } : { case: item.id, index: item.index };
  log.info({ worker, stream, ...place }, text);
}
