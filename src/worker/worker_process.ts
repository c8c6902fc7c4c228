import { constants } from "node:os";
import { ChunkInHand, nextChunkNumber } from "./chunk_in_hand.js";
import { WorkerClock } from "./clock.js";
import { CpuMeter, type CpuTimes } from "./cpu.js";
import type { Log } from "./log.js";
import { privateBytes } from "./memory.js";
import type { FromPython, MetricReport, ModelCallMessage, PrintedMessage } from "./messages.js";
import type { RowsFrame } from "./rows.js";
import type { ProcessExit, WorkerLink } from "./template.js";
import type { ChunkCase, ChunkUsage, Death, EndReason, InHand, ModelReply, Row, Worker } from "./types.js";

/** After SIGINT a metric has this long for its `finally` blocks; then its process group is killed. */
export const KILL_GRACE_MS = 1_000;

/**
 * A death is told when the connection has ended and the template has reaped the process. Both come together; where one does not (a metric that
 * closed its descriptors, or gave them to a process outside its group), the other is not waited for any longer than this.
 */
export const OTHER_HALF_MS = 500;

/** Why a worker ends: what it was told, or what became of it. The first reason stays. */
export type WorkerEnd =
  | { readonly kind: "told"; readonly reason: EndReason }
  /** `died`: by itself; `late`: it was not ready in time; `unusable`: it could not be started; `breach`: it said what no worker says. */
  | { readonly kind: "died" | "late" | "unusable" | "breach"; readonly why: string };

export interface WorkerEvents {
  /** It has loaded the metric itself. */
  loaded(worker: WorkerProcess, metric: MetricReport): void;
  /** It is ready, or has finished a chunk; where another was queued it goes on with that. */
  idle(worker: WorkerProcess): void;
  rows(worker: WorkerProcess, rows: readonly Row[], usage: ChunkUsage | undefined): void;
  printed(worker: WorkerProcess, message: PrintedMessage): void;
  /** The metric asks a model. */
  modelCall(worker: WorkerProcess, message: ModelCallMessage): void;
  /** It takes no chunk any more; its process may live on for a moment. */
  ending(worker: WorkerProcess, end: WorkerEnd): void;
  /** Its process is gone. `death.position` says nothing where it was told to end. */
  ended(worker: WorkerProcess, end: WorkerEnd, death: Death): void;
}

/** What a worker's owner does for it. */
export interface WorkerHost {
  readonly events: WorkerEvents;
  readonly log: Log;
  /** From the start to the first `ready`, the load of the metric included where the worker does that. */
  readonly startTimeoutMs: number;
  signal(signal: number, group: boolean): void;
  /** Nothing of it is needed any more; what it printed last has not been told yet. */
  forget(): void;
}

/** One worker: its states, from its process's start to its end. The pool passes on to it what its template tells. */
export class WorkerProcess implements Worker {
  #state: Worker["state"] = "starting";
  #pid = 0;
  #end: WorkerEnd | undefined;
  #link: WorkerLink | undefined;
  #clock: WorkerClock | undefined;
  #meter: CpuMeter | undefined;
  #baseline: CpuTimes | undefined;
  #lastChunk = 0;
  #chunk: ChunkInHand | undefined;
  /** Sent while another was in hand. */
  #queued: ChunkInHand | undefined;
  #isDisconnected = false;
  #exit: ProcessExit | undefined;
  /** The one timer of the state: start, other half, or kill grace. */
  #timer: NodeJS.Timeout | undefined;
  #afterTimer: NodeJS.Immediate | undefined;

  constructor(
    readonly number: number,
    private readonly host: WorkerHost,
  ) {
    this.#setTimer(host.startTimeoutMs, () => {
      this.#die(`a worker was not ready within ${host.startTimeoutMs / 1000} s`, "late");
      this.#kill();
    });
  }

  get pid(): number {
    return this.#pid;
  }

  get state(): Worker["state"] {
    return this.#state;
  }

  /** The number of the chunk in hand; `undefined` where it has none. */
  get chunk(): number | undefined {
    return this.#chunk?.number;
  }

  run(cases: readonly ChunkCase[], isWatched = true): number {
    if (this.#state !== "idle" && !this.canQueue) {
      throw new Error(`worker ${this.number} is ${this.#state} and cannot take a chunk`);
    }
    this.#lastChunk = nextChunkNumber(this.#lastChunk);
    const chunk = new ChunkInHand(this.#lastChunk, cases.length);
    if (this.#state === "idle") this.#chunk = chunk;
    else this.#queued = chunk;
    this.#state = "busy";
    this.#link?.channel.sendChunk(this.#lastChunk, cases);
    // Only a metric that takes long is ever asked what it does meanwhile, and gets one case at a time. Read while the worker begins already; what it
    // has used by then is little.
    this.#baseline = isWatched && cases.length === 1 ? this.#meter?.read() : undefined;
    return this.#lastChunk;
  }

  get canQueue(): boolean {
    return this.#state === "busy" && this.#queued === undefined;
  }

  setEnvironment(variables: Readonly<Record<string, string>>): void {
    this.#link?.channel.send({ type: "environment", variables });
  }

  answer(call: number, reply: ModelReply): void {
    if (this.#end === undefined) this.#link?.channel.send({ type: "model_answer", call, ...reply });
  }

  recall(): void {
    if (this.#state === "busy" && this.#chunk !== undefined) this.#link?.outbox.recall(this.#chunk.number);
  }

  look(): InHand {
    const inHand = this.#state === "busy" ? this.#readOutbox() : undefined;
    return inHand ?? { position: undefined, beganAt: performance.now() };
  }

  cpuTimes(): CpuTimes | undefined {
    const now = this.#meter?.read();
    const base = this.#baseline;
    if (now === undefined || base === undefined) return undefined;
    return {
      cpuMs: Math.max(0, now.cpuMs - base.cpuMs),
      coreWaitMs: Math.max(0, now.coreWaitMs - base.coreWaitMs),
      isRunnable: now.isRunnable,
    };
  }

  privateBytes(): number | undefined {
    return this.#pid === 0 ? undefined : privateBytes(this.#pid);
  }

  end(reason: EndReason): void {
    if (this.#end !== undefined) return;
    this.#end = { kind: "told", reason };
    const before = this.#state;
    this.#state = "ending";
    this.#link?.channel.end();
    this.host.events.ending(this, this.#end);
    if (before === "starting" || (before === "busy" && reason === "surplus")) {
      // Nothing runs that would need time to clean up: no case yet, or none any more.
      this.#kill();
      return;
    }
    if (before === "busy") this.host.signal(constants.signals.SIGINT, false);
    this.#setTimer(KILL_GRACE_MS, () => {
      this.#kill();
    });
  }

  // From the template.

  processStarted(pid: number): void {
    this.#pid = pid;
  }

  connected(link: WorkerLink): void {
    if (this.#link !== undefined || this.#state === "ended") {
      link.channel.destroy();
      link.outbox.close();
      return;
    }
    this.#link = link;
    this.#pid = link.hello.pid;
    this.#clock = new WorkerClock(link.hello.clock_ns, link.receivedAt);
    link.channel.listen({
      message: (message) => {
        this.#message(message);
      },
      rows: (frame) => {
        this.#rows(frame);
      },
      closed: (problem) => {
        this.#disconnected(problem);
      },
    });
    if (this.#end !== undefined) link.channel.end();
  }

  processEnded(exit: ProcessExit): void {
    if (this.#exit !== undefined) return;
    this.#exit = exit;
    if (this.#isDisconnected) {
      this.#finish();
      return;
    }
    this.#die("its process ended", "died");
    this.#setTimer(OTHER_HALF_MS, () => {
      this.#finish();
    });
  }

  /** Its template is gone: it was killed with it, nobody is left to tell how, and nothing connects any more. */
  templateGone(): void {
    this.processEnded({ exitCode: undefined, signal: "SIGKILL" });
    if (this.#link === undefined) this.#finish();
  }

  startFailed(error: string): void {
    this.#die(`a worker could not be started: ${error}`, "unusable");
    this.#finish();
  }

  /** It cannot be used, as `why` says: a start that failed. */
  refuse(why: string): void {
    this.#die(why, "unusable");
    this.#kill();
  }

  // From its own process.

  #message(message: FromPython): void {
    if (message.type === "printed") {
      this.host.events.printed(this, message);
      return;
    }
    if (!this.#isHeard) return;
    switch (message.type) {
      case "loaded":
        this.host.events.loaded(this, message.metric);
        return;
      case "ready":
        if (this.#end === undefined) this.#ready();
        return;
      case "model_call":
        this.host.events.modelCall(this, message);
        return;
      case "hello":
      case "started":
      case "start_failed":
      case "ended":
        this.#breach(`it sent ${message.type}, which a worker does not`);
    }
  }

  #ready(): void {
    if (this.#state !== "starting") {
      this.#breach("it said twice that it is ready");
      return;
    }
    this.#clearTimer();
    this.#meter = new CpuMeter(this.#pid);
    this.#state = "idle";
    this.host.events.idle(this);
  }

  /** What a worker said before it died counts, also where its death was heard of first. */
  get #isHeard(): boolean {
    return this.#end === undefined || this.#end.kind === "died";
  }

  #rows(frame: RowsFrame): void {
    if (!this.#isHeard) return;
    const chunk = this.#chunk;
    if (chunk?.number !== frame.chunk) {
      this.#breach(`it sent rows of chunk ${frame.chunk}, which it does not have`);
      return;
    }
    const stray = frame.rows.find((row) => row.position >= chunk.cases);
    if (stray !== undefined) {
      this.#breach(`it sent a row at position ${stray.position} of a chunk of ${chunk.cases} cases`);
      return;
    }
    this.host.events.rows(this, chunk.untold(frame.rows), frame.usage);
    if (!frame.finished || !this.#isStillBusy()) return;
    this.#chunk = this.#queued;
    this.#queued = undefined;
    if (this.#chunk === undefined) this.#state = "idle";
    this.host.events.idle(this);
  }

  /** Whoever heard of the rows may have ended it. */
  #isStillBusy(): boolean {
    return this.#state === "busy";
  }

  /** Tells the rows in the outbox that were not told yet; returns what is in hand. */
  #readOutbox(): InHand | undefined {
    const chunk = this.#chunk;
    const contents = this.#link?.outbox.read();
    if (chunk === undefined || contents?.chunk !== chunk.number) return undefined;
    const rows = chunk.untold(contents.rows);
    if (rows.length > 0) this.host.events.rows(this, rows, undefined);
    const { position, beganNs } = contents;
    if (position === undefined || position >= chunk.cases || chunk.isTold(position)) return undefined;
    return { position, beganAt: this.#clock?.local(beganNs) ?? performance.now() };
  }

  #breach(why: string): void {
    this.host.log.error({ worker: this.number, pid: this.#pid }, `worker ${this.number} is killed: ${why}`);
    this.#die(why, "breach");
    this.#kill();
  }

  #disconnected(problem: string | undefined): void {
    if (this.#isDisconnected || this.#state === "ended") return;
    this.#isDisconnected = true;
    if (this.#exit !== undefined) {
      this.#finish();
      return;
    }
    if (this.#end !== undefined) return;
    this.#die(problem ?? "its connection ended", problem === undefined ? "died" : "breach");
    this.#setTimer(OTHER_HALF_MS, () => {
      const fields = { worker: this.number, pid: this.#pid };
      this.host.log.error(
        fields,
        `worker ${this.number} lives on without its connection and is killed: ${problem ?? "it closed it"}`,
      );
      this.#kill();
    });
  }

  /** It ends for a reason of its own, unless it is ending already. */
  #die(why: string, kind: Exclude<WorkerEnd["kind"], "told">): void {
    if (this.#end !== undefined) return;
    this.#end = { kind, why };
    this.#state = "ending";
    this.host.events.ending(this, this.#end);
  }

  #kill(): void {
    this.host.signal(constants.signals.SIGKILL, true);
    // A process that even SIGKILL does not end at once waits for the system: nobody has to wait for it.
    this.#setTimer(OTHER_HALF_MS, () => {
      this.#exit ??= { exitCode: undefined, signal: "SIGKILL" };
      this.#finish();
    });
  }

  #finish(): void {
    if (this.#state === "ended") return;
    this.#clearTimer();
    const end = this.#end ?? { kind: "died", why: "its process ended" };
    const inHand = end.kind === "told" ? undefined : this.#readOutbox();
    this.#state = "ended";
    this.#link?.channel.destroy();
    this.#link?.outbox.close();
    this.#meter?.close();
    this.host.forget();
    const { exitCode, signal } = this.#exit ?? { exitCode: undefined, signal: undefined };
    const breach = end.kind === "breach" ? { breach: end.why } : {};
    this.host.events.ended(this, end, { pid: this.#pid, exitCode, signal, ...breach, position: inHand?.position });
  }

  /** Where this process was held up for so long, what has arrived meanwhile is heard first. */
  #setTimer(milliseconds: number, then: () => void): void {
    this.#clearTimer();
    this.#timer = setTimeout(() => {
      this.#afterTimer = setImmediate(then);
    }, milliseconds);
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#afterTimer);
  }
}
