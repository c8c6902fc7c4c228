import type { ChildProcess } from "node:child_process";
import { LineSplitter } from "./output.js";

/** So much of what an interpreter printed is kept to explain why it did not start. */
const TAIL_BYTES = 8 * 1024;

/** What the template prints before its descriptors are a FIFO: told line by line, and its end kept. */
export class BootOutput {
  #tail = Buffer.alloc(0);
  readonly #splitters: LineSplitter[] = [];

  constructor(
    private readonly child: ChildProcess,
    onLine: (line: string) => void,
  ) {
    for (const stream of [child.stdout, child.stderr]) {
      const lines = new LineSplitter(onLine);
      this.#splitters.push(lines);
      stream?.on("data", (piece: Buffer) => {
        this.#tail = Buffer.concat([this.#tail, piece]).subarray(-TAIL_BYTES);
        lines.push(piece);
      });
      stream?.on("error", () => undefined); // The process is gone; "exit" tells.
    }
  }

  tail(): string {
    return this.#tail.toString("utf8");
  }

  end(): void {
    for (const lines of this.#splitters) lines.end();
    this.child.stdout?.destroy();
    this.child.stderr?.destroy();
  }
}
