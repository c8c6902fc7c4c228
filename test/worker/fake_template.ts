import type { Channel, ChannelEvents } from "../../src/worker/channel.js";
import type { MetricReport, ToPython } from "../../src/worker/messages.js";
import type { Outbox, OutboxContents } from "../../src/worker/outbox.js";
import type { LaunchOptions, LaunchTemplate, Template, TemplateEvents } from "../../src/worker/template.js";
import type { ChunkCase, Row } from "../../src/worker/types.js";

export const REPORT: MetricReport = {
  fingerprint: "f1",
  file: "metric.py",
  problems: [],
  arguments: 3,
  signature: "(input, output, expected=None)",
  is_async: false,
  warnings: [],
  reward_spec_json: "",
  reward_weights: null,
  load_ms: 1,
};

/** What fake templates do when they come to be; tests change it between launches. */
export interface FakeBehaviour {
  report: MetricReport;
  hazards: string[];
  /** What becomes of a template: it loads, dies while it loads, never says a word, or was never started. */
  template: "loads" | "dies" | "hangs" | "not_found";
  /** What becomes of a worker. */
  worker: "ready" | "start_failed" | "dies" | "hangs";
  loadMs: number;
}

/** Templates and workers in process. What a worker does with a chunk the tests say themselves. */
export class FakeTemplates {
  readonly behaviour: FakeBehaviour = { report: REPORT, hazards: [], template: "loads", worker: "ready", loadMs: 5 };
  readonly templates: FakeTemplate[] = [];

  /** Called first at each launch; what it throws, `launch` throws. */
  onLaunch: () => void = () => undefined;

  readonly launch: LaunchTemplate = (options, events) => {
    this.onLaunch();
    const template = new FakeTemplate(options, events, this.behaviour);
    this.templates.push(template);
    return template;
  };

  get current(): FakeTemplate {
    const template = this.templates.at(-1);
    if (template === undefined) throw new Error("no template was launched");
    return template;
  }
}

export class FakeTemplate implements Template {
  readonly workers = new Map<number, FakeWorkerProcess>();
  readonly forgotten: number[] = [];
  readonly startedAt: number[] = [];
  isGone = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly options: LaunchOptions,
    readonly events: TemplateEvents,
    readonly behaviour: FakeBehaviour,
  ) {
    const saidHello = behaviour.template === "loads" || behaviour.template === "dies";
    if (behaviour.template === "hangs") return;
    this.#timer = setTimeout(() => {
      if (saidHello)
        events.hello({
          type: "hello",
          role: "template",
          worker: 0,
          pid: 1,
          python: "3.11.7",
          executable: "/usr/bin/python3",
          clock_ns: 0,
        });
      if (behaviour.template === "not_found") this.#gone({ spawnError: "ENOENT", saidHello });
      else if (behaviour.template === "dies") this.#gone({ exitCode: 3, saidHello });
      else this.#timer = setTimeout(() => this.#load(), options.startMethod === "fork" ? behaviour.loadMs : 0);
    }, 1);
  }

  start(number: number): void {
    this.startedAt.push(performance.now());
    const worker = new FakeWorkerProcess(this, number);
    this.workers.set(number, worker);
    worker.begin();
  }

  signal(number: number, signal: number, group: boolean): void {
    this.workers.get(number)?.signals.push({ signal, group });
    if (signal === 9) this.workers.get(number)?.die({ signal: "SIGKILL" });
  }

  forget(number: number): void {
    this.forgotten.push(number);
  }

  stop(): Promise<void> {
    for (const worker of this.workers.values()) worker.die({ signal: "SIGKILL" });
    this.#gone({ exitCode: 0, saidHello: true });
    return Promise.resolve();
  }

  /** `kill -9` of the template: its workers die with it, and nobody tells how. */
  kill(): void {
    for (const worker of this.workers.values()) worker.disconnect();
    this.#gone({ signal: "SIGKILL", saidHello: true });
  }

  #load(): void {
    if (this.options.startMethod === "fork") this.events.loaded(this.behaviour.report, this.behaviour.hazards);
    this.events.ready();
  }

  #gone(how: { exitCode?: number; signal?: string; spawnError?: string; saidHello: boolean }): void {
    if (this.isGone) return;
    this.isGone = true;
    clearTimeout(this.#timer);
    const { exitCode, signal, spawnError, saidHello } = how;
    this.events.gone({ exitCode, signal, spawnError, saidHello, output: "" });
  }
}

export class FakeWorkerProcess implements Channel, Outbox {
  readonly signals: { signal: number; group: boolean }[] = [];
  readonly chunks: { chunk: number; cases: readonly ChunkCase[] }[] = [];
  readonly recalls: number[] = [];
  contents: OutboxContents | undefined;
  isEnded = false;
  isClosed = false;
  isOutboxClosed = false;
  #events: ChannelEvents | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly template: FakeTemplate,
    readonly number: number,
  ) {}

  get pid(): number {
    return 1000 + this.number;
  }

  begin(): void {
    const { events, behaviour } = this.template;
    this.#timer = setTimeout(() => {
      if (behaviour.worker === "start_failed") {
        this.isEnded = true;
        events.startFailed(this.number, "no more processes");
        return;
      }
      events.started(this.number, this.pid);
      if (behaviour.worker === "dies") this.die({ exitCode: 1 });
      else if (behaviour.worker === "ready") this.#getReady();
    }, 1);
  }

  /** Says hello. */
  connect(): void {
    const { events } = this.template;
    const { number: worker, pid } = this;
    const hello = {
      type: "hello",
      role: "worker",
      worker,
      pid,
      python: "3.11.7",
      executable: "/usr/bin/python3",
      clock_ns: 0,
    } as const;
    events.connected(worker, { hello, receivedAt: performance.now(), channel: this, outbox: this });
  }

  load(metric: MetricReport): void {
    this.#events?.message({ type: "loaded", metric, fork_hazards: [] });
  }

  #getReady(): void {
    const { behaviour, options } = this.template;
    this.connect();
    if (options.startMethod === "fork") {
      this.#events?.message({ type: "ready" });
      return;
    }
    this.#timer = setTimeout(() => {
      this.load(behaviour.report);
      this.#events?.message({ type: "ready" });
    }, behaviour.loadMs);
  }

  // What its metric does.

  /** Sends rows of its chunk. */
  answer(positions: readonly number[], finished: boolean): void {
    const chunk = this.chunks.at(-1)?.chunk ?? 0;
    const usage = { metricMs: positions.length, cpuMs: positions.length, coreWaitMs: 0 };
    this.#events?.rows({ chunk, finished, usage, rows: positions.map(row) });
  }

  /** Leaves finished rows in the outbox, and a case in hand. */
  leave(positions: readonly number[], position: number | undefined): void {
    const chunk = this.chunks.at(-1)?.chunk ?? 0;
    this.contents = { chunk, position, beganNs: performance.now() * 1e6, rows: positions.map(row) };
  }

  print(text: string): void {
    this.#events?.message({ type: "printed", stream: "stdout", chunk: this.chunks.at(-1)?.chunk ?? 0, case: 0, text });
  }

  /** Its process ends: first the connection, then the template's word. */
  die(how: { exitCode?: number; signal?: string }): void {
    if (this.isEnded) return;
    this.disconnect();
    this.reap(how);
  }

  disconnect(problem?: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.#timer);
    this.#events?.closed(problem);
  }

  reap({ exitCode, signal }: { exitCode?: number; signal?: string }): void {
    this.isEnded = true;
    this.template.events.ended(this.number, { exitCode, signal });
  }

  // As a channel.

  listen(events: ChannelEvents): void {
    this.#events = events;
  }

  send(message: ToPython): void {
    throw new Error(`a worker was sent ${message.type} once it had connected`);
  }

  sendChunk(chunk: number, cases: readonly ChunkCase[]): void {
    this.chunks.push({ chunk, cases });
  }

  end(): void {
    // Real workers leave at the end of their chunk; here the tests say when.
  }

  destroy(): void {
    this.disconnect();
  }

  // As an outbox.

  read(): OutboxContents | undefined {
    return this.contents;
  }

  recall(chunk: number): void {
    this.recalls.push(chunk);
  }

  close(): void {
    this.isOutboxClosed = true;
  }
}

export function row(position: number): Row {
  const empty = new Uint8Array(0);
  return { position, kind: "score", value: 1, metricMs: 1, text: empty, detail: empty, sideInfo: empty };
}

export function chunkCase(output = '"a"', expected?: string): ChunkCase {
  return {
    input: Buffer.from('{"n":1}'),
    output: Buffer.from(output),
    expected: expected === undefined ? undefined : Buffer.from(expected),
    seed: undefined,
    observation: undefined,
  };
}
