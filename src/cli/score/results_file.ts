import { toJson } from "@bufbuild/protobuf";
import { type WriteStream, createWriteStream } from "node:fs";

import { type CaseResult, CaseResultSchema } from "../../gen/skynet/scoring/v1/case_pb.js";
import { CommandError } from "../exit.js";

/**
 * Results as JSON Lines in the order of their cases, written as they come: one that comes early waits for those before it. The file is
 * made, or emptied, when there is a first line for it: a run that fails before leaves alone what was there.
 */
export class ResultsFile {
  readonly #waiting = new Map<number, string>();
  #next = 0;
  #written = 0;
  #failure: Error | undefined;
  #stream: WriteStream | undefined;

  constructor(private readonly path: string) {}

  /** How many results the file has. */
  get written(): number {
    return this.#written;
  }

  /** Takes results; waits while the disk is slower than they come. */
  async add(results: readonly CaseResult[]): Promise<void> {
    for (const result of results) this.#waiting.set(result.index, toLine(result));
    let text = "";
    for (;;) {
      const line = this.#waiting.get(this.#next);
      if (line === undefined) break;
      text += line;
      this.#waiting.delete(this.#next);
      this.#next += 1;
      this.#written += 1;
    }
    await this.#write(text);
  }

  /** Writes what still waits, in order; where a run ended early, the cases without a result are left out. */
  async close(): Promise<void> {
    const rest = [...this.#waiting].sort(([one], [other]) => one - other);
    this.#written += rest.length;
    this.#waiting.clear();
    await this.#write(rest.map(([, line]) => line).join(""));
    await new Promise<void>((resolve) => {
      if (this.#stream === undefined) resolve();
      else
        this.#stream.close(() => {
          resolve();
        });
    });
    this.#throwFailure();
  }

  async #write(text: string): Promise<void> {
    this.#throwFailure();
    if (text === "") return;
    const stream = (this.#stream ??= this.#open());
    // Called in any case, after "error" where opening or the write failed.
    await new Promise<void>((resolve) => {
      stream.write(text, () => {
        resolve();
      });
    });
    this.#throwFailure();
  }

  #open(): WriteStream {
    return createWriteStream(this.path).on("error", (error) => (this.#failure = error));
  }

  #throwFailure(): void {
    if (this.#failure === undefined) return;
    throw new CommandError(`--output ${this.path}: writing failed: ${messageOf(this.#failure)}`);
  }
}

/** Protobuf's JSON with the names of the proto file, zeros written out. */
function toLine(result: CaseResult): string {
  return `${JSON.stringify(toJson(CaseResultSchema, result, { useProtoFieldName: true, alwaysEmitImplicit: true }))}\n`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
