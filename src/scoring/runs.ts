import type { Death, Pool, Row, Worker, WorkerListener } from "../worker/types.js";
import type { Call, Pending } from "./call.js";
import type { FaultLog } from "./fault_log.js";
import type { Observations } from "./observations.js";
import { runCrashOutcome, runOutcome, runTimeoutOutcome, runUnavailableOutcome, strayFrameOutcome } from "./outcome.js";
import type { CaseError } from "./result.js";
import { gatewayVariables } from "./run_environment.js";
import { Turns } from "./turns.js";

/** How often running runs are looked at: the precision of their deadlines. */
const LOOK_EVERY_MS = 20;
/** For each place one more worker stands ready, so that no run waits for a fork. */
const READY_PER_PLACE = 2;

/** How artifacts are run, and who hears of it. */
export interface RunsOptions {
  readonly runTimeoutMs: number;
  /** Runs in progress at most: they are being measured, and must not slow each other down. */
  readonly maxRuns: number;
  /** What a run returns may have so many bytes of JSON. */
  readonly maxOutputBytes: number;
  readonly observations: Observations;
  /** Where run code reaches models, for its environment. */
  readonly gatewayUrl: () => string;
  readonly faults: FaultLog;
  readonly readyChanged: () => void;
}

/** A run in progress. */
interface Run {
  readonly call: Call;
  readonly pending: Pending;
  readonly observation: string;
  readonly startedAt: number;
}

/** Runs artifacts on the cases that have no output, each in a worker of its own, and hands what they return to the metric. */
export class Runs implements WorkerListener {
  readonly #turns = new Turns((call) => call.runQueue);
  readonly #idle = new Set<Worker>();
  readonly #running = new Map<Worker, Run>();
  /** They were told to end before they had answered, and may still compute: each keeps its place until it is gone. */
  readonly #leaving = new Set<Worker>();
  #hasStood = false;
  #looking: NodeJS.Timeout | undefined;

  constructor(private readonly options: RunsOptions) {}

  /** Begins to use the pool that reports to this. */
  begin(pool: Pool): void {
    pool.want(READY_PER_PLACE * this.options.maxRuns);
  }

  /** Whether run code can be run; between two runs no worker need stand ready. */
  get isReady(): boolean {
    return this.#hasStood;
  }

  /** Which case a worker runs, for the log. */
  caseInHand(worker: number): { id: string; index: number } | undefined {
    for (const [running, { pending }] of this.#running) if (running.number === worker) return pending.item;
    return undefined;
  }

  // From calls.

  /** Cases without output may have been queued. */
  queued(call: Call): void {
    this.#turns.join(call);
    this.#dispatch();
  }

  /** The call is over: what it has queued is dropped, what it has running ended. */
  over(call: Call): void {
    this.#turns.leave(call);
    for (const [worker, run] of [...this.#running]) {
      if (run.call !== call) continue;
      this.#finish(worker);
      this.#end(worker, "cancelled");
    }
    this.#dispatch();
  }

  // From workers.

  idle(worker: Worker): void {
    this.#hasStood = true;
    if (this.#running.has(worker)) this.#answered(worker, undefined);
    else this.#idle.add(worker);
    this.options.readyChanged();
    this.#dispatch();
  }

  rows(worker: Worker, [row]: readonly Row[]): void {
    this.#answered(worker, row);
    this.#dispatch();
  }

  modelCall(worker: Worker): void {
    // The metric's models are not run code's: it reaches models through the gateway. Only a forged frame gets here.
    this.#idle.delete(worker);
    const run = this.#finish(worker);
    worker.end("surplus");
    if (run !== undefined) this.#fail(worker, run, strayFrameOutcome());
    this.#dispatch();
  }

  died(worker: Worker, death: Death): void {
    this.#idle.delete(worker);
    const run = this.#finish(worker);
    if (run !== undefined) this.#fail(worker, run, runCrashOutcome(death));
    this.options.readyChanged();
    this.#dispatch();
  }

  unavailable(reason: string): void {
    for (const [call, pending] of this.#turns.drain()) {
      call.settle(pending, runUnavailableOutcome(reason), performance.now() - pending.arrivedAt, 0);
      call.flush();
    }
    this.#hasStood = this.#running.size > 0;
    this.options.readyChanged();
  }

  // Work.

  #dispatch(): void {
    for (const worker of this.#idle) {
      if (this.#running.size + this.#leaving.size >= this.options.maxRuns) return;
      if (worker.state !== "idle") continue;
      const call = this.#turns.next();
      if (call === undefined) return;
      const pending = call.runQueue.shift();
      this.#turns.join(call);
      this.#idle.delete(worker);
      if (pending !== undefined) this.#start(worker, call, pending);
    }
  }

  #start(worker: Worker, call: Call, pending: Pending): void {
    const { observations, gatewayUrl } = this.options;
    const { input, artifact } = pending.item;
    if (input === undefined || artifact === undefined)
      throw new Error("a case without input or artifact was queued to be run");
    const { id, token } = observations.begin(pending.item.id, this, worker.pid);
    worker.setEnvironment(gatewayVariables(gatewayUrl(), token));
    this.#running.set(worker, { call, pending, observation: id, startedAt: performance.now() });
    worker.run([{ input, output: artifact, expected: undefined, seed: undefined, observation: undefined }]);
    this.#looking ??= setInterval(() => {
      this.#look();
    }, LOOK_EVERY_MS);
  }

  #look(): void {
    for (const worker of this.#leaving) if (worker.state === "ended") this.#leaving.delete(worker);
    if (this.#running.size + this.#leaving.size === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
    }
    const oldest = performance.now() - this.options.runTimeoutMs;
    for (const [worker, run] of [...this.#running]) {
      if (run.startedAt > oldest) continue;
      this.#finish(worker);
      this.#end(worker, "timeout");
      this.#fail(worker, run, runTimeoutOutcome(this.options.runTimeoutMs));
    }
    this.#dispatch();
  }

  /** A run's one row; `undefined`: it has none to give. The next run gets a process that knows nothing of it. */
  #answered(worker: Worker, row: Row | undefined): void {
    const run = this.#finish(worker);
    if (run === undefined) return;
    worker.end("surplus");
    const outcome = runOutcome(row, this.options.maxOutputBytes);
    const { call, pending } = run;
    if (!(outcome instanceof Uint8Array)) this.#fail(worker, run, outcome);
    else call.ran(pending, outcome);
  }

  #end(worker: Worker, reason: "timeout" | "cancelled"): void {
    worker.end(reason);
    this.#leaving.add(worker);
  }

  /** The run is over: what was measured of it stands with its case. */
  #finish(worker: Worker): Run | undefined {
    const run = this.#running.get(worker);
    if (run === undefined) return undefined;
    this.#running.delete(worker);
    this.options.observations.end(run.observation);
    run.pending.observed = this.options.observations.use(run.observation);
    return run;
  }

  #fail(worker: Worker, { call, pending, startedAt }: Run, error: CaseError): void {
    this.options.faults.tell(worker, pending.item, error);
    call.settle(pending, error, startedAt - pending.arrivedAt, 0);
    call.flush();
  }
}
