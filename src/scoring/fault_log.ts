import type { Log } from "../worker/log.js";
import type { Worker } from "../worker/types.js";
import type { Case } from "./case.js";
import type { CaseError } from "./result.js";

/** The same fault is logged in full so often; a metric that fails on every case must not drown the log. */
const MOST_OF_A_KIND = 5;
const MOST_KINDS = 1000;

/** Logs the faults of cases for the metric's author, with what an engine is not told: the traceback. */
export class FaultLog {
  readonly #seen = new Map<string, number>();

  constructor(private readonly log: Log) {}

  tell(worker: Worker, item: Case, error: CaseError): void {
    const fields = { code: error.code, case: item.id, index: item.index, worker: worker.number };
    const times = this.#count(error);
    if (times > MOST_OF_A_KIND) {
      this.log.debug(fields, error.message);
      return;
    }
    const note = times === MOST_OF_A_KIND ? " (more like this one are logged at level debug only)" : "";
    const traceback = error.traceback === "" ? {} : { traceback: error.traceback };
    this.log.warn({ ...fields, ...traceback }, error.message + note);
  }

  /** Faults are of a kind where they come from the same place: the traceback's last frame, without the values. */
  #count(error: CaseError): number {
    const frames = error.traceback.split("\n").filter((line) => line.startsWith("  File "));
    const kind = `${error.code} ${frames.at(-1) ?? error.message.slice(0, 80)}`;
    if (this.#seen.size >= MOST_KINDS && !this.#seen.has(kind)) return MOST_OF_A_KIND + 1;
    const times = (this.#seen.get(kind) ?? 0) + 1;
    this.#seen.set(kind, times);
    return times;
  }
}
