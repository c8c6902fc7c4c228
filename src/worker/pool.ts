import { resolve } from "node:path";
import { Backoff, type StartStamp } from "./backoff.js";
import { howItEnded } from "./exit_words.js";
import { choosePython, loadDeath } from "./interpreter.js";
import type { Log } from "./log.js";
import type { MetricReport } from "./messages.js";
import { difference, loadedMetric, unloadedMetric } from "./metric_report.js";
import { RareWarning } from "./rare_warning.js";
import { SlowStart } from "./slow_start.js";
import type { LaunchTemplate } from "./template.js";
import { loadTimeout, TemplateKeeper, type KeeperEvents } from "./template_keeper.js";
import { launchTemplate } from "./template_process.js";
import type { Death, LoadedMetric, OpenedPool, Pool, PoolOptions, Worker, WorkerListener } from "./types.js";
import { WorkerProcess, type WorkerEnd, type WorkerEvents } from "./worker_process.js";

const GIVEN_UP = "its load was given up, since the sidecar stops";

/** So many starts in a row have to fail before the cases that wait are told. */
const MOST_FAILED_STARTS = 3;

/** Loads a metric and makes its workers ready to start; see `OpenPool` in types.ts. */
export async function openPool(
  options: PoolOptions,
  listener: WorkerListener,
  log: Log,
  launch: LaunchTemplate = launchTemplate,
): Promise<OpenedPool> {
  const pool = new WorkerPool(options, listener, log, launch);
  const metric = await pool.load(options.stopLoading);
  if (metric.problems.length === 0) return { metric, pool };
  await pool.close();
  return { metric, pool: undefined };
}

/** What the pool keeps with each worker whose process is not gone. */
interface Entry {
  readonly worker: WorkerProcess;
  readonly stamp: StartStamp;
  /** Whether the owner has been told of it. */
  wasTold: boolean;
  wasReady: boolean;
  /** It ended by itself. */
  hasFailed: boolean;
  /** It died with its template, which says nothing about it. */
  lostTemplate: boolean;
}

class WorkerPool implements Pool {
  readonly workers = new Set<Worker>();
  readonly #entries = new Map<number, Entry>();
  readonly #keeper: TemplateKeeper;
  readonly #backoff = new Backoff();
  readonly #slowStart = new SlowStart();
  readonly #startWarning: RareWarning;
  #templateStamp: StartStamp = this.#backoff.stamp();
  /** A spawned worker that is starting or stands ready beyond the wanted ones. */
  #spare: WorkerProcess | undefined;
  #wanted = 0;
  #nextNumber = 1;
  #failedStarts = 0;
  #retry: NodeJS.Timeout | undefined;
  #metric: LoadedMetric | undefined;
  #describe: (metric: LoadedMetric) => void = () => undefined;
  #isClosing = false;
  #closing: Promise<void> | undefined;
  #emptied: () => void = () => undefined;

  constructor(
    private readonly options: PoolOptions,
    private readonly listener: WorkerListener,
    private readonly log: Log,
    launch: LaunchTemplate,
  ) {
    this.#startWarning = new RareWarning(log);
    const { kind, environment, startMethod, loadTimeoutMs, maxRowBytes } = options;
    const file = resolve(options.file);
    const python = choosePython(options.python);
    const keeper = { launch, python, kind, file, environment, startMethod, loadTimeoutMs, maxRowBytes };
    this.#keeper = new TemplateKeeper(keeper, this.#templateEvents(), log);
  }

  /** Resolves with what the first interpreter that loads the metric finds. */
  async load(stop?: AbortSignal): Promise<LoadedMetric> {
    const giveUp = (): void => void this.close();
    try {
      return await new Promise((resolve) => {
        this.#describe = resolve;
        this.#launch();
        stop?.addEventListener("abort", giveUp, { once: true });
        if (stop?.aborted === true) giveUp();
      });
    } finally {
      stop?.removeEventListener("abort", giveUp);
    }
  }

  want(count: number): void {
    this.#wanted = count;
    this.#promote();
    this.#fill();
  }

  close(): Promise<void> {
    this.#isClosing = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#retry);
    const emptied = new Promise<void>((resolve) => (this.#emptied = resolve));
    await this.#keeper.close();
    for (const { worker } of [...this.#entries.values()]) worker.templateGone();
    if (this.#entries.size > 0) await emptied;
    this.workers.clear();
    if (this.#metric === undefined) this.#described(unloadedMetric(this.options, GIVEN_UP, this.#keeper.facts));
  }

  // Starting.

  /** Starts what is missing, now or when the back-off allows. */
  #fill(): void {
    if (this.#isClosing || this.#metric?.problems.length) return;
    if (this.#keeper.template !== undefined && this.#missing() <= 0) return;
    const waitMs = this.#backoff.waitMs();
    clearTimeout(this.#retry);
    if (waitMs > 0) {
      this.#retry = setTimeout(() => {
        this.#fill();
      }, waitMs);
    } else if (this.#keeper.template === undefined) {
      this.#launch();
    } else {
      const starts = Math.min(this.#missing(), this.#slowStart.room(this.#starting()));
      for (let start = 0; start < starts; start++) this.#start();
    }
  }

  /** With spawn one more than wanted stands ready, as loading takes its time. */
  #missing(): number {
    const spares = this.#keeper.facts.startMethod === "spawn" ? 1 : 0;
    return this.#wanted + spares - this.workers.size - (this.#spare === undefined ? 0 : 1);
  }

  #starting(): number {
    return [...this.#entries.values()].filter(({ worker }) => worker.state === "starting").length;
  }

  #launch(): void {
    this.#templateStamp = this.#backoff.stamp();
    this.#keeper.launch();
  }

  #start(): void {
    const number = this.#nextNumber++;
    const { template } = this.#keeper;
    if (template === undefined) return;
    const worker = new WorkerProcess(number, {
      events: this.#workerEvents,
      log: this.log,
      startTimeoutMs: this.options.loadTimeoutMs,
      signal: (signal, group) => {
        template.signal(number, signal, group);
      },
      forget: () => {
        template.forget(number);
      },
    });
    this.#entries.set(number, {
      worker,
      stamp: this.#backoff.stamp(),
      wasReady: false,
      wasTold: false,
      hasFailed: false,
      lostTemplate: false,
    });
    if (this.workers.size < this.#wanted) this.workers.add(worker);
    else this.#spare = worker;
    template.start(number);
  }

  /** The spare takes a place among the wanted, where one is free. */
  #promote(): void {
    const spare = this.#spare;
    if (spare === undefined || this.workers.size >= this.#wanted) return;
    this.#spare = undefined;
    this.workers.add(spare);
    if (spare.state !== "idle") return;
    // Not inside a call of the owner's.
    queueMicrotask(() => {
      if (spare.state === "idle" && !this.#isClosing) this.#tellIdle(spare);
    });
  }

  #startFailed(why: string): void {
    this.#failedStarts += 1;
    this.#startWarning.warn({ failedStarts: this.#failedStarts }, `a start failed: ${why}`);
    if (this.#failedStarts >= MOST_FAILED_STARTS && !this.#hasLivingWorker()) this.listener.unavailable(why);
  }

  #hasLivingWorker(): boolean {
    return [...this.workers].some(({ state }) => state === "idle" || state === "busy");
  }

  // From the template.

  #templateEvents(): KeeperEvents {
    return {
      loaded: (report) => {
        this.#templateLoaded(report);
      },
      ready: () => {
        this.#fill();
      },
      lost: (reason, wasReady) => {
        this.#lost(reason, wasReady);
      },
      started: (worker, pid) => this.#entries.get(worker)?.worker.processStarted(pid),
      startFailed: (worker, error) => this.#entries.get(worker)?.worker.startFailed(error),
      ended: (worker, exit) => this.#entries.get(worker)?.worker.processEnded(exit),
      connected: (worker, link) => {
        const entry = this.#entries.get(worker);
        if (entry !== undefined) {
          entry.worker.connected(link);
          return;
        }
        link.channel.destroy();
        link.outbox.close();
      },
      printed: ({ stream, text }) => {
        this.options.printed({ worker: 0, stream, text: withoutEnd(text), chunk: undefined, position: undefined });
      },
      output: (worker, text) => {
        const chunk = this.#entries.get(worker)?.worker.chunk;
        this.options.printed({ worker, stream: "output", text, chunk, position: undefined });
      },
    };
  }

  #templateLoaded(report: MetricReport): void {
    const problem = this.#accept(report);
    if (problem !== undefined) this.#keeper.discard(problem);
  }

  /** The first report describes the metric; whoever loads it later must find the same. Returns what is wrong. */
  #accept(report: MetricReport): string | undefined {
    if (this.#metric === undefined) {
      this.#described(loadedMetric(report, this.#keeper.facts));
      return undefined;
    }
    const problem = difference(this.#metric, report);
    // Trying again does not mend this: where nothing else lives, those that wait hear of it at once.
    if (problem !== undefined) this.#failedStarts = MOST_FAILED_STARTS - 1;
    return problem;
  }

  #described(metric: LoadedMetric): void {
    this.#metric = metric;
    this.#describe(metric);
  }

  #lost(reason: string, wasReady: boolean): void {
    if (this.#isClosing) return;
    if (this.#metric === undefined) this.#described(unloadedMetric(this.options, reason, this.#keeper.facts));
    if (this.#metric?.problems.length) return;
    this.#backoff.failed(this.#templateStamp);
    for (const entry of [...this.#entries.values()]) {
      entry.lostTemplate = true;
      entry.worker.templateGone();
    }
    if (wasReady) this.log.warn({}, `${reason}; it is started again, and its workers with it`);
    else this.#startFailed(reason);
    this.#fill();
  }

  // From workers.

  readonly #workerEvents: WorkerEvents = {
    loaded: (worker, report) => {
      const problem = this.#accept(report);
      if (problem !== undefined) worker.refuse(problem);
    },
    idle: (worker) => {
      this.#idle(worker);
    },
    rows: (worker, rows, usage) => {
      if (rows.length > 0 || usage !== undefined) this.#succeeded(worker);
      this.listener.rows(worker, rows, usage);
    },
    printed: (worker, { stream, text, chunk, case: position }) => {
      const place = { chunk: chunk === null || chunk === 0 ? undefined : chunk, position: position ?? undefined };
      this.options.printed({ worker: worker.number, stream, text: withoutEnd(text), ...place });
    },
    modelCall: (worker, { call, chunk, case: position, messages, model, temperature, ...rest }) => {
      this.listener.modelCall(worker, {
        call,
        chunk,
        position: position ?? undefined,
        messages,
        model: model ?? undefined,
        temperature: temperature ?? undefined,
        maxTokens: rest.max_tokens ?? undefined,
        responseFormat: rest.response_format ?? undefined,
        timeoutMs: rest.timeout_ms ?? undefined,
      });
    },
    ending: (worker, end) => {
      this.#ending(worker, end);
    },
    ended: (worker, end, death) => {
      this.#ended(worker, end, death);
    },
  };

  #idle(worker: WorkerProcess): void {
    const entry = this.#entries.get(worker.number);
    const isFirst = entry?.wasReady === false;
    if (entry !== undefined) entry.wasReady = true;
    this.#failedStarts = 0;
    if (this.workers.has(worker)) this.#tellIdle(worker);
    if (isFirst && this.#slowStart.succeeded()) this.#fill();
  }

  #tellIdle(worker: WorkerProcess): void {
    const entry = this.#entries.get(worker.number);
    if (entry !== undefined) entry.wasTold = true;
    this.listener.idle(worker);
  }

  /** The metric works: where that worker is one of the last to be started, what waits to be started need not wait any longer. */
  #succeeded(worker: WorkerProcess): void {
    const entry = this.#entries.get(worker.number);
    if (entry === undefined) return;
    const { series, level } = entry.stamp;
    // What it did before it died comes after its own failure was counted.
    if (this.#backoff.succeeded({ series, level: entry.hasFailed ? level + 1 : level })) this.#fill();
  }

  #ending(worker: WorkerProcess, end: WorkerEnd): void {
    const entry = this.#entries.get(worker.number);
    if (end.kind !== "told" && entry !== undefined) this.#failed(entry);
    // The first one to load is not tried twice: what came of it describes the metric.
    if (this.#metric === undefined) return;
    this.workers.delete(worker);
    if (this.#spare === worker) this.#spare = undefined;
    this.#promote();
    this.#fill();
  }

  #failed(entry: Entry): void {
    entry.hasFailed = true;
    if (!this.#isRunsOwnEnd(entry)) this.#backoff.failed(entry.stamp);
    if (!entry.wasReady && !entry.lostTemplate) this.#slowStart.failed();
  }

  /** A run that kills its process costs its case, whatever the artifact: it says nothing of the next one. */
  #isRunsOwnEnd({ wasTold }: Entry): boolean {
    return this.options.kind === "run" && wasTold;
  }

  #ended(worker: WorkerProcess, end: WorkerEnd, death: Death): void {
    const entry = this.#entries.get(worker.number);
    this.#entries.delete(worker.number);
    if (this.#entries.size === 0) this.#emptied();
    if (this.#isClosing || entry === undefined || end.kind === "told") return;
    if (this.#metric === undefined) {
      this.#described(unloadedMetric(this.options, this.#whyNotLoaded(end, death), this.#keeper.facts));
      return;
    }
    if (entry.wasTold) this.listener.died(worker, death);
    else if (!entry.wasReady && !entry.lostTemplate) this.#startFailed(whyNotReady(end, death));
  }

  #whyNotLoaded(end: WorkerEnd, death: Death): string {
    return end.kind === "late" ? loadTimeout(this.options.file, this.options.loadTimeoutMs) : loadDeath(death);
  }
}

function whyNotReady(end: Exclude<WorkerEnd, { kind: "told" }>, death: Death): string {
  return end.kind === "died" ? `a worker ${howItEnded(death)} before it was ready` : end.why;
}

/** Text without the end of its last line. */
function withoutEnd(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}
