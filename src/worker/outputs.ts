import type { PrivateFolder } from "./folder.js";
import type { Log } from "./log.js";
import { ProcessOutput } from "./output.js";
import { RareWarning } from "./rare_warning.js";

/** The FIFOs of a template (worker 0) and of those of its workers that are known: expected, or not yet forgotten. */
export class Outputs {
  /** `undefined`: not opened yet. */
  readonly #open = new Map<number, ProcessOutput | undefined>([[0, undefined]]);
  readonly #warning: RareWarning;

  constructor(
    private readonly folder: PrivateFolder,
    private readonly onLine: (worker: number, line: string) => void,
    log: Log,
  ) {
    this.#warning = new RareWarning(log);
  }

  expect(worker: number): void {
    this.#open.set(worker, undefined);
  }

  isKnown(worker: number): boolean {
    return this.#open.has(worker);
  }

  /** The FIFO is there now. Does nothing where it is open already, or its worker is not known. */
  open(worker: number): void {
    if (!this.#open.has(worker) || this.#open.get(worker) !== undefined) return;
    try {
      const output = new ProcessOutput(this.folder.output(worker), (line) => {
        this.onLine(worker, line);
      });
      this.#open.set(worker, output);
    } catch (error) {
      this.#warning.warn({ worker }, `what a Python process prints cannot be read: ${reasonOf(error)}`);
    }
  }

  /** Tells what a worker has printed last. */
  forget(worker: number): void {
    this.#open.get(worker)?.end();
    this.#open.delete(worker);
  }

  close(): void {
    for (const worker of [...this.#open.keys()]) this.forget(worker);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
