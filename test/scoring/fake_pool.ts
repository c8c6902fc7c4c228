import type {
  ChunkCase,
  ChunkUsage,
  Death,
  EndReason,
  InHand,
  ModelReply,
  Pool,
  Row,
  RunningUsage,
  Worker,
  WorkerListener,
} from "../../src/worker/types.js";

/** What a case makes the fake metric do: read from the case's output, `{"ms": …, "then": …}`. */
export interface Behaviour {
  /** Wall time of the call. */
  readonly ms: number;
  /** CPU time of the call; the rest it waits. Default: all of it. */
  readonly cpuMs?: number;
  /** What of the rest it waits for a core, which is told only once the call has ended. Default: 0. */
  readonly coreWaitMs?: number;
  /** How it ends. `die_idle`: the process dies before it begins the case. */
  readonly then?: "score" | "raise" | "die" | "die_idle";
  /** Feedback of so many bytes. */
  readonly feedback?: number;
}

const START_MS = 10;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Workers in process, on simulated time. They keep finished rows back until the chunk ends, as in an outbox. */
export class FakePool implements Pool {
  readonly workers = new Set<FakeWorker>();
  readonly ended: { worker: number; reason: EndReason }[] = [];
  readonly chunks: number[] = [];
  mostBusy = 0;
  /** Chunks that were sent to a worker that had one in hand. */
  queued = 0;
  #next = 1;
  #wanted = 0;

  constructor(readonly listener: WorkerListener) {}

  want(count: number): void {
    this.#wanted = Math.max(this.#wanted, count);
    while (this.workers.size < this.#wanted) this.#start();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  gone(worker: FakeWorker): void {
    this.workers.delete(worker);
    this.want(this.#wanted);
  }

  noteBusy(): void {
    const busy = [...this.workers].filter((worker) => worker.state === "busy").length;
    this.mostBusy = Math.max(this.mostBusy, busy);
  }

  #start(): void {
    const worker = new FakeWorker(this, this.#next++);
    this.workers.add(worker);
    setTimeout(() => {
      worker.state = "idle";
      this.listener.idle(worker);
    }, START_MS);
  }
}

export class FakeWorker implements Worker {
  state: Worker["state"] = "starting";
  readonly pid = 1;
  readonly answers: [call: number, reply: ModelReply][] = [];
  #chunk = 0;
  #cases: readonly ChunkCase[] = [];
  #queued: readonly ChunkCase[] | undefined;
  #position = 0;
  #began = 0;
  #outbox: Row[] = [];
  #used = { metricMs: 0, cpuMs: 0, coreWaitMs: 0 };
  #recalled = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly pool: FakePool,
    readonly number: number,
  ) {}

  get canQueue(): boolean {
    return this.state === "busy" && this.#queued === undefined;
  }

  run(cases: readonly ChunkCase[]): number {
    this.pool.chunks.push(cases.length);
    if (this.state === "busy") {
      if (this.#queued !== undefined) throw new Error("a worker has a chunk waiting already");
      this.#queued = cases;
      this.pool.queued += 1;
    } else {
      this.state = "busy";
      this.#take(cases);
      this.pool.noteBusy();
    }
    return ++this.#chunk;
  }

  #take(cases: readonly ChunkCase[]): void {
    this.#cases = cases;
    this.#position = 0;
    this.#recalled = false;
    this.#used = { metricMs: 0, cpuMs: 0, coreWaitMs: 0 };
    this.#begin();
  }

  recall(): void {
    this.#recalled = true;
  }

  setEnvironment(): void {
    throw new Error("a metric's worker is told nothing of an environment");
  }

  answer(call: number, reply: ModelReply): void {
    this.answers.push([call, reply]);
  }

  look(): InHand {
    this.#send(undefined);
    return { position: this.#position, beganAt: this.#began };
  }

  cpuTimes(): RunningUsage {
    const { ms, cpuMs = ms, coreWaitMs = 0 } = this.#behaviour();
    const share = (performance.now() - this.#began) / Math.max(ms, 1);
    const { coreWaitMs: waited } = this.#used;
    return { cpuMs: this.#used.cpuMs + cpuMs * share, coreWaitMs: waited, isRunnable: coreWaitMs > 0 };
  }

  privateBytes(): undefined {
    return undefined;
  }

  end(reason: EndReason): void {
    clearTimeout(this.#timer);
    this.state = "ending";
    this.pool.ended.push({ worker: this.number, reason });
    this.pool.gone(this);
  }

  /** The process is killed from outside. */
  kill(): void {
    this.#die(this.state === "busy" ? this.#position : undefined);
  }

  #behaviour(): Behaviour {
    const item = this.#cases[this.#position];
    return JSON.parse(new TextDecoder().decode(item?.output)) as Behaviour;
  }

  #begin(): void {
    const { ms, then } = this.#behaviour();
    this.#began = performance.now();
    this.#timer = setTimeout(
      () => {
        if (then === "die") this.#die(this.#position);
        else if (then === "die_idle") this.#die(undefined);
        else this.#finishCase();
      },
      then === "die_idle" ? 0 : ms,
    );
  }

  #finishCase(): void {
    const { ms, cpuMs = ms, coreWaitMs = 0, then, feedback = 2 } = this.#behaviour();
    this.#outbox.push({
      position: this.#position,
      kind: then === "raise" ? "metric_exception" : "score",
      value: 1,
      metricMs: ms,
      text: bytes(then === "raise" ? "ValueError: no" : "x".repeat(feedback)),
      detail: bytes(""),
      sideInfo: bytes(""),
    });
    this.#used = {
      metricMs: this.#used.metricMs + ms,
      cpuMs: this.#used.cpuMs + cpuMs,
      coreWaitMs: this.#used.coreWaitMs + coreWaitMs,
    };
    this.#position += 1;
    if (this.#position < this.#cases.length && !this.#recalled) {
      this.#begin();
      return;
    }
    const queued = this.#queued;
    this.#queued = undefined;
    if (queued === undefined) this.state = "idle";
    this.#send(this.#used);
    if (queued !== undefined) this.#take(queued);
    this.pool.listener.idle(this);
  }

  #send(usage: ChunkUsage | undefined): void {
    const rows = this.#outbox.splice(0);
    if (rows.length > 0 || usage !== undefined) this.pool.listener.rows(this, rows, usage);
  }

  #die(position: number | undefined): void {
    clearTimeout(this.#timer);
    this.#send(undefined);
    this.state = "ended";
    const death: Death = { pid: this.pid, exitCode: undefined, signal: "SIGKILL", position };
    this.pool.gone(this);
    this.pool.listener.died(this, death);
  }
}
