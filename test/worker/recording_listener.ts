import type { Log } from "../../src/worker/log.js";
import type { ChunkUsage, Death, ModelCall, Row, Worker, WorkerListener } from "../../src/worker/types.js";

/** Remembers what a pool tells, and lets tests wait for it. */
export class RecordingListener implements WorkerListener {
  readonly idled: Worker[] = [];
  readonly told: { worker: Worker; rows: readonly Row[]; usage: ChunkUsage | undefined }[] = [];
  readonly deaths: { worker: Worker; death: Death }[] = [];
  readonly asked: { worker: Worker; call: ModelCall }[] = [];
  readonly reasons: string[] = [];
  /** Called at each idle, rows and died; replace it to act at once. */
  onIdle: (worker: Worker) => void = () => undefined;
  onRows: (worker: Worker, rows: readonly Row[]) => void = () => undefined;
  #changed: () => void = () => undefined;

  idle(worker: Worker): void {
    this.idled.push(worker);
    this.onIdle(worker);
    this.#changed();
  }

  rows(worker: Worker, rows: readonly Row[], usage: ChunkUsage | undefined): void {
    this.told.push({ worker, rows, usage });
    this.onRows(worker, rows);
    this.#changed();
  }

  modelCall(worker: Worker, call: ModelCall): void {
    this.asked.push({ worker, call });
    this.#changed();
  }

  died(worker: Worker, death: Death): void {
    this.deaths.push({ worker, death });
    this.#changed();
  }

  unavailable(reason: string): void {
    this.reasons.push(reason);
    this.#changed();
  }

  /** Positions of all rows told, in order. */
  get positions(): number[] {
    return this.told.flatMap(({ rows }) => rows.map(({ position }) => position));
  }

  /** Resolves when `condition` holds; it is looked at after each thing told, and every 20 ms. Rejects after 20 s. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = performance.now() + 20_000;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`waited 20 s for ${what}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 20);
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

/** Keeps what is logged. */
export class RecordingLog implements Log {
  readonly lines: string[] = [];

  get warnings(): string[] {
    return this.lines.filter((line) => line.startsWith("warn "));
  }

  debug(_fields: object, message: string): void {
    this.lines.push(`debug ${message}`);
  }

  info(_fields: object, message: string): void {
    this.lines.push(`info ${message}`);
  }

  warn(_fields: object, message: string): void {
    this.lines.push(`warn ${message}`);
  }

  error(_fields: object, message: string): void {
    this.lines.push(`error ${message}`);
  }
}
