import type { ChunkCase, Death, EndReason, InHand, Pool, Row, Worker, WorkerListener } from "../../src/worker/types.js";
import { MODEL_CALL } from "./fake_messages.js";

/** What an artifact makes the fake run do: the artifact itself, as JSON. */
export interface RunBehaviour {
  /** Wall time of the run. */
  readonly ms: number;
  /** How it ends; default: it returns `output`. */
  readonly then?:
    | "return"
    | "raise"
    | "return_nonsense"
    | "return_not_utf8"
    | "score"
    | "silent"
    | "die"
    | "breach"
    | "ask"
    | "refuse";
  /** JSON text; default: what makes the fake metric score at once. */
  readonly output?: string;
}

const START_MS = 10;
/** From being told to end after a timeout until it is gone. */
export const LEAVING_MS = 300;
const NOTHING: Uint8Array = new Uint8Array();
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Run workers in process, on simulated time. */
export class FakeRunPool implements Pool {
  readonly workers = new Set<FakeRunWorker>();
  /** Every worker that was given a run. */
  readonly ran: FakeRunWorker[] = [];
  readonly ended: EndReason[] = [];
  /** The most that ran, or had not gone yet after they were told to, at one time. */
  mostAtOnce = 0;
  isClosed = false;
  #next = 1;
  #wanted = 0;

  constructor(readonly listener: WorkerListener) {}

  want(count: number): void {
    this.#wanted = count;
    while (this.workers.size < this.#wanted) this.#start();
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  began(worker: FakeRunWorker): void {
    this.ran.push(worker);
    const present = this.ran.filter(({ isPresent }) => isPresent).length;
    this.mostAtOnce = Math.max(this.mostAtOnce, present);
  }

  gone(worker: FakeRunWorker): void {
    this.workers.delete(worker);
    this.want(this.#wanted);
  }

  #start(): void {
    const worker = new FakeRunWorker(this, this.#next++);
    this.workers.add(worker);
    setTimeout(() => {
      worker.state = "idle";
      this.listener.idle(worker);
    }, START_MS);
  }
}

export class FakeRunWorker implements Worker {
  readonly canQueue = false;
  state: Worker["state"] = "starting";
  readonly pid = 1;
  environment: Readonly<Record<string, string>> = {};
  cases: readonly ChunkCase[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly pool: FakeRunPool,
    readonly number: number,
  ) {}

  /** Whether its process may still be computing. */
  get isPresent(): boolean {
    return this.state === "busy" || this.state === "ending";
  }

  setEnvironment(variables: Readonly<Record<string, string>>): void {
    this.environment = variables;
  }

  run(cases: readonly ChunkCase[]): number {
    if (this.state !== "idle") throw new Error(`a run worker makes one run, and this one is ${this.state}`);
    this.state = "busy";
    this.cases = cases;
    this.pool.began(this);
    const behaviour = JSON.parse(new TextDecoder().decode(cases[0]?.output)) as RunBehaviour;
    this.#timer = setTimeout(() => {
      this.#finish(behaviour);
    }, behaviour.ms);
    return 1;
  }

  end(reason: EndReason): void {
    clearTimeout(this.#timer);
    const isKilled = this.state === "idle" || reason === "surplus";
    this.state = isKilled ? "ended" : "ending";
    if (!isKilled) setTimeout(() => (this.state = "ended"), LEAVING_MS);
    this.pool.ended.push(reason);
    this.pool.gone(this);
  }

  recall(): void {
    throw new Error("a run has nothing to be recalled");
  }

  answer(): void {
    throw new Error("a run is not answered");
  }

  look(): InHand {
    throw new Error("nothing that a run worker holds back is of use");
  }

  cpuTimes(): undefined {
    return undefined;
  }

  privateBytes(): undefined {
    return undefined;
  }

  #finish({ then = "return", output = '{"ms":1}' }: RunBehaviour): void {
    const { listener } = this.pool;
    switch (then) {
      case "return":
        listener.rows(this, [row("ran", bytes(output))], undefined);
        return;
      case "return_nonsense":
        listener.rows(this, [row("ran", bytes("{'a': 1}"))], undefined);
        return;
      case "return_not_utf8":
        listener.rows(this, [row("ran", Uint8Array.from([0x22, 0xff, 0x22]))], undefined);
        return;
      case "raise":
        listener.rows(
          this,
          [row("metric_exception", bytes("KeyError: 'x' (run.py, line 2)"), bytes("Trace"))],
          undefined,
        );
        return;
      case "refuse":
        listener.rows(this, [row("metric_return_value", bytes("run returned a set"))], undefined);
        return;
      case "score":
        listener.rows(this, [row("score", bytes("forged"))], undefined);
        return;
      case "silent":
        listener.rows(this, [], undefined);
        return;
      case "ask":
        listener.modelCall(this, MODEL_CALL);
        return;
      case "die":
        this.#die({ exitCode: 0, signal: undefined });
        return;
      case "breach":
        this.#die({
          exitCode: undefined,
          signal: "SIGKILL",
          breach: "it sent rows of chunk 7, which it does not have",
        });
    }
  }

  #die(how: Pick<Death, "exitCode" | "signal" | "breach">): void {
    this.state = "ended";
    this.pool.gone(this);
    this.pool.listener.died(this, { pid: this.pid, position: 0, ...how });
  }
}

function row(kind: Row["kind"], text: Uint8Array, detail: Uint8Array = NOTHING): Row {
  return { position: 0, kind, value: 1, metricMs: 0.001, text, detail, sideInfo: NOTHING };
}
