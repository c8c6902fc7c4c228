import type { ChunkUsage, Death, ModelCall, Pool, Row, Worker, WorkerListener } from "../worker/types.js";
import { Assignment } from "./assignment.js";
import type { Call } from "./call.js";
import { chunkCase, cutChunk } from "./chunk_cases.js";
import { ChunkSize, MAX_CHUNK_CASES } from "./chunk_size.js";
import type { FaultLog } from "./fault_log.js";
import type { ModelCalls } from "./model_calls.js";
import { crashOutcome, rowOutcome, timeoutOutcome, unavailableOutcome } from "./outcome.js";
import { Turns } from "./turns.js";
import type { WorkerCount } from "./worker_count.js";

/** How often busy workers that have gone quiet are looked at: the precision of deadlines. */
const LOOK_EVERY_MS = 20;
/** After this long without a word, a worker's outbox and CPU time tell what it is doing. */
const QUIET_MS = 15;
/** A running chunk that takes this long is cut short, so that what it holds can go to other workers. */
const LONG_CHUNK_MS = 25;
/** A model call's own clock never ends it before the metric's timeout does, which looks only so often. */
const MODEL_CALL_GRACE_MS = 250;
/** How long a cancelled call's workers may go on before they are ended: ending one costs more than a short case. */
const CANCEL_GRACE_MS = 100;
/** A worker that has a chunk but no case in hand is reading it; that is not the metric's time, but must end too. */
const READING_GRACE_MS = 10_000;
/** A case that so many workers died over, without ever beginning it, is itself the fault. */
const MOST_LOST_STARTS = 3;

/** How cases are given to workers, and who hears of it. */
export interface SchedulerOptions {
  readonly metricTimeoutMs: number;
  readonly seed: bigint | undefined;
  readonly count: WorkerCount;
  readonly models: ModelCalls;
  readonly faults: FaultLog;
  /** More workers than now would fit into memory: how many in all, `undefined` where the system does not tell. */
  readonly fits: (workers: ReadonlySet<Worker>) => number | undefined;
  /** `Scheduler.isReady` may have changed. */
  readonly readyChanged: () => void;
}

/** Hands the queued cases of all calls to the workers of one metric, and what comes back to the calls. */
export class Scheduler implements WorkerListener {
  readonly #size = new ChunkSize();
  readonly #turns = new Turns((call) => call.queue);
  readonly #idle = new Set<Worker>();
  readonly #busy = new Map<Worker, Assignment>();
  #pool: Pool | undefined;
  #hasStood = false;
  #looking: NodeJS.Timeout | undefined;

  constructor(private readonly options: SchedulerOptions) {}

  /** Begins to use the pool that reports to this scheduler. */
  begin(pool: Pool): void {
    this.#pool = pool;
    pool.want(this.options.count.first);
    this.#dispatch();
  }

  /** Whether a worker could take a case, or would after the one it has. */
  get isReady(): boolean {
    return [...this.#idle, ...this.#busy.keys()].some(({ state }) => state === "idle" || state === "busy");
  }

  /** Which case a worker has in hand, for the log; `undefined` where it is between cases. */
  caseInHand(worker: number, chunk: number, position: number): { id: string; index: number } | undefined {
    for (const [busy, assignment] of this.#busy) {
      if (busy.number !== worker) continue;
      return [assignment, assignment.next].find((one) => one?.chunk === chunk)?.cases[position]?.item;
    }
    return undefined;
  }

  // From calls.

  /** Cases with an output may have been queued. */
  queued(call: Call): void {
    this.#turns.join(call);
    this.#dispatch();
  }

  /** The call is over: what it has queued is dropped, what it has running ended. */
  over(call: Call): void {
    this.#turns.leave(call);
    for (const [worker, assignment] of this.#busy) {
      if (assignment.call !== call) continue;
      assignment.abandonedAt = performance.now();
      assignment.abortModelCalls();
      worker.recall();
    }
    // What it leaves may be what others wait for.
    this.#dispatch();
  }

  // From workers.

  idle(worker: Worker): void {
    this.#makeReady();
    const assignment = this.#busy.get(worker);
    assignment?.abortModelCalls();
    this.#goOn(worker, assignment?.next);
    if (assignment !== undefined) this.#turns.giveBack(assignment.call, assignment.rest());
    this.options.readyChanged();
    this.#dispatch();
  }

  rows(worker: Worker, rows: readonly Row[], usage: ChunkUsage | undefined): void {
    const assignment = this.#busy.get(worker);
    if (assignment === undefined) return;
    const taken = rows.filter((row) => assignment.take(row.position) !== undefined);
    for (const row of taken) assignment.metricMs += row.metricMs;
    if (usage !== undefined) this.#learn(assignment, usage);
    assignment.heardAt = performance.now();
    // A worker whose chunk has ended with these rows gets its next one first: it would wait meanwhile.
    queueMicrotask(() => {
      for (const row of taken) this.#settle(worker, assignment, row);
      this.#holdBack(worker);
    });
    assignment.call.flush();
  }

  modelCall(worker: Worker, call: ModelCall): void {
    const assignment = this.#busy.get(worker);
    if (assignment === undefined) return;
    const { position, beganAt } = worker.look();
    const began = position === undefined ? performance.now() : beganAt;
    const deadlineAt = began + this.options.metricTimeoutMs + MODEL_CALL_GRACE_MS;
    void this.options.models.ask(worker, assignment, call, deadlineAt);
    this.options.count.asks();
    if (this.#turns.cases > 0) this.#dispatch();
  }

  died(worker: Worker, death: Death): void {
    const assignment = this.#forget(worker);
    if (assignment !== undefined) this.#bury(worker, assignment, death);
    this.options.readyChanged();
    this.#dispatch();
  }

  unavailable(reason: string): void {
    for (const [call, pending] of this.#turns.drain()) {
      call.settle(pending, unavailableOutcome(reason), performance.now() - pending.arrivedAt, 0);
      call.flush();
    }
    this.options.readyChanged();
  }

  // Work.

  #dispatch(): void {
    const target = this.#target();
    for (const worker of this.#idle) {
      if (this.#busy.size >= target) break;
      // One that is dying is told of when all that it did is known.
      if (worker.state !== "idle") continue;
      const call = this.#turns.next();
      if (call === undefined) break;
      this.#idle.delete(worker);
      this.#assign(worker, call, target);
    }
    if (this.#size.isFast) this.#queueAhead(target);
  }

  /** A metric that is faster than its cases can be handed over has its next chunk waiting. */
  #queueAhead(workers: number): void {
    for (const [worker, assignment] of this.#busy) {
      if (this.#turns.cases < MAX_CHUNK_CASES) return;
      if (assignment.next !== undefined || assignment.abandonedAt !== undefined || !worker.canQueue) continue;
      const call = this.#turns.next();
      if (call === undefined) return;
      this.#assign(worker, call, workers);
    }
  }

  /** The worker has finished a chunk: it goes on with `next`, or is idle. */
  #goOn(worker: Worker, next: Assignment | undefined): void {
    if (next === undefined) {
      this.#busy.delete(worker);
      this.#idle.add(worker);
      return;
    }
    const now = performance.now();
    next.begin(now);
    this.#busy.set(worker, next);
    if (!next.call.isOver) return;
    next.abandonedAt = now;
    worker.recall();
  }

  /** The first worker stands: those that will be needed follow it. */
  #makeReady(): void {
    if (this.#hasStood) return;
    this.#hasStood = true;
    if (this.options.count.ready > this.options.count.first) this.#want(this.options.count.ready);
  }

  #want(wanted: number): void {
    const { count, fits } = this.options;
    const pool = this.#pool;
    if (pool === undefined || wanted <= pool.workers.size) return;
    const room = count.fixed === undefined ? fits(pool.workers) : undefined;
    pool.want(Math.max(count.first, Math.min(wanted, room ?? wanted)));
  }

  #asking(): number {
    let asking = 0;
    for (const assignment of this.#busy.values()) if (assignment.isAsking) asking += 1;
    return asking;
  }

  /** How many workers to keep busy; asks the pool for those that are missing. */
  #target(): number {
    if (this.#pool === undefined) return 0;
    const target = this.options.count.target(this.#asking());
    this.#want(Math.min(target, this.#busy.size + this.#turns.cases));
    return target;
  }

  #assign(worker: Worker, call: Call, workers: number): void {
    const cases = cutChunk(call.queue, this.#size.next(call.queue.length, workers));
    this.#turns.join(call);
    const { seed } = this.options;
    const chunk = worker.run(
      cases.map((pending) => chunkCase(pending, seed)),
      this.options.count.isWatching,
    );
    const assignment = new Assignment(call, cases, chunk, performance.now());
    const before = this.#busy.get(worker);
    if (before === undefined) this.#busy.set(worker, assignment);
    else before.next = assignment;
    this.#looking ??= setInterval(() => {
      this.#look();
    }, LOOK_EVERY_MS);
  }

  #settle(worker: Worker, assignment: Assignment, row: Row): void {
    const pending = assignment.cases[row.position];
    if (pending === undefined) return;
    const outcome = rowOutcome(row);
    if (outcome.kind === "error") this.options.faults.tell(worker, pending.item, outcome);
    const queuedMs = assignment.startedAt + assignment.settledMs - pending.arrivedAt;
    assignment.settledMs += row.metricMs;
    assignment.call.settle(pending, outcome, queuedMs, row.metricMs, assignment.modelUsage(row.position));
  }

  /** Results can be far larger than their cases: a chunk that fills its call's share ends early. */
  #holdBack(worker: Worker): void {
    const assignment = this.#busy.get(worker);
    if (assignment === undefined || assignment.left <= 1 || assignment.isRecalled || assignment.call.mayRun) return;
    assignment.isRecalled = true;
    worker.recall();
  }

  #learn(assignment: Assignment, usage: ChunkUsage): void {
    const step = assignment.usageSince(usage);
    this.#size.learn(step.cases, step.metricMs);
    this.options.count.learn({ wallMs: step.metricMs, busyMs: step.cpuMs + step.coreWaitMs });
  }

  /** Every `LOOK_EVERY_MS`: deadlines, results that a slow case holds back, and whether the metric waits. */
  #look(): void {
    if (this.#busy.size === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
      return;
    }
    const now = performance.now();
    let wallMs = 0;
    let busyMs = 0;
    const curious = this.#mayGrow();
    for (const [worker, assignment] of [...this.#busy]) {
      if (now - assignment.heardAt < QUIET_MS || this.#needsNoLook(assignment, now)) continue;
      const hasCase = this.#lookAt(worker, assignment, now);
      if (!curious || !hasCase || !this.#busy.has(worker)) continue;
      const times = worker.cpuTimes();
      if (times === undefined) continue;
      const running = assignment.notLearned(now, times);
      wallMs += running.wallMs;
      busyMs += running.busyMs;
    }
    if (curious) this.options.count.suppose({ wallMs, busyMs });
    this.#dispatch();
  }

  /** Its one case is in time, and what it uses is of no interest: looking at a judge's many workers again and again costs more than they do. */
  #needsNoLook({ left, abandonedAt, startedAt }: Assignment, now: number): boolean {
    if (left > 1 || abandonedAt !== undefined) return false;
    return !this.options.count.isWatching && now - startedAt < this.options.metricTimeoutMs;
  }

  #mayGrow(): boolean {
    const { count } = this.options;
    return count.isWatching && this.#busy.size < count.most && this.#turns.cases > 0;
  }

  /** Returns whether the worker has a case in hand: without one it waits for its next chunk, which says nothing of the metric. */
  #lookAt(worker: Worker, assignment: Assignment, now: number): boolean {
    const inHand = worker.look();
    const hasCase = inHand.position !== undefined;
    const call = assignment.call;
    if (assignment.abandonedAt !== undefined) {
      if (now - assignment.abandonedAt >= CANCEL_GRACE_MS) this.#end(worker, "cancelled");
      return hasCase;
    }
    const { metricTimeoutMs } = this.options;
    const began = inHand.position === undefined ? undefined : inHand.beganAt;
    const overran =
      began === undefined
        ? now - assignment.heardAt > metricTimeoutMs + READING_GRACE_MS
        : now - began >= metricTimeoutMs;
    if (overran) {
      const position = inHand.position ?? assignment.firstLeft;
      const pending = assignment.take(position);
      if (pending !== undefined) {
        const metricMs = began === undefined ? 0 : now - began;
        const outcome = timeoutOutcome(metricTimeoutMs);
        this.options.faults.tell(worker, pending.item, outcome);
        call.settle(pending, outcome, now - metricMs - pending.arrivedAt, metricMs, assignment.modelUsage(position));
      }
      this.#end(worker, "timeout");
    } else if (assignment.left > 1 && now - assignment.startedAt > LONG_CHUNK_MS && !assignment.isRecalled) {
      assignment.isRecalled = true;
      worker.recall();
      if (began !== undefined) this.#size.learn(1, now - began);
    }
    return hasCase;
  }

  /** Ends a busy worker; what it had not begun goes to others. */
  #end(worker: Worker, reason: "timeout" | "cancelled"): void {
    const assignment = this.#forget(worker);
    worker.end(reason);
    if (assignment !== undefined) this.#giveBack(assignment);
    assignment?.call.flush();
    this.options.readyChanged();
  }

  #bury(worker: Worker, assignment: Assignment, death: Death): void {
    let lost = death.position;
    const next = assignment.firstLeft;
    if (lost === undefined && next !== undefined) {
      const pending = assignment.cases[next];
      if (pending !== undefined && ++pending.lostStarts >= MOST_LOST_STARTS) lost = next;
    }
    const pending = assignment.take(lost);
    if (pending !== undefined) {
      const outcome = crashOutcome(death);
      const metricMs = Math.max(0, performance.now() - assignment.startedAt - assignment.metricMs);
      this.options.faults.tell(worker, pending.item, outcome);
      const queuedMs = performance.now() - metricMs - pending.arrivedAt;
      assignment.call.settle(pending, outcome, queuedMs, metricMs, assignment.modelUsage(lost));
    }
    this.#giveBack(assignment);
    assignment.call.flush();
  }

  #forget(worker: Worker): Assignment | undefined {
    const assignment = this.#busy.get(worker);
    this.#busy.delete(worker);
    this.#idle.delete(worker);
    assignment?.abortModelCalls();
    return assignment;
  }

  /** What a worker that is gone left over is next in its call's turn. */
  #giveBack(assignment: Assignment): void {
    const { next } = assignment;
    if (next !== undefined) this.#turns.giveBack(next.call, next.rest());
    this.#turns.giveBack(assignment.call, assignment.rest());
  }
}
