import { constants, openSync, readSync } from "node:fs";
import { Socket } from "node:net";

/** A line that goes on for longer is told in pieces of this size. */
export const MAX_LINE_BYTES = 16 * 1024;

/** After a worker's death so much of what stood in its FIFO is still read: what a FIFO can hold, unless something goes on writing. */
const MAX_LEFTOVER_BYTES = 1024 * 1024;

/** Cuts what comes into lines at 0x0A, without the line's end; bytes that are not UTF-8 become U+FFFD. */
export class LineSplitter {
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(private readonly onLine: (line: string) => void) {}

  push(piece: Buffer): void {
    let rest = piece;
    while (rest.length > 0) {
      const room = MAX_LINE_BYTES - this.#heldBytes;
      const at = rest.subarray(0, room).indexOf(0x0a);
      const taken = at < 0 ? Math.min(room, rest.length) : at;
      this.#held.push(rest.subarray(0, taken));
      this.#heldBytes += taken;
      if (at >= 0 || this.#heldBytes === MAX_LINE_BYTES) this.#emit();
      rest = rest.subarray(at < 0 ? taken : taken + 1);
    }
  }

  /** Nothing comes any more: tells the last line, if it had no end. */
  end(): void {
    if (this.#heldBytes > 0) this.#emit();
  }

  #emit(): void {
    const line = Buffer.concat(this.#held, this.#heldBytes).toString("utf8");
    this.#held = [];
    this.#heldBytes = 0;
    this.onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}

/** What a process writes to its descriptors 1 and 2, read from its FIFO and told line by line. */
export class ProcessOutput {
  readonly #lines: LineSplitter;
  readonly #fd: number;
  readonly #socket: Socket;

  /** Throws where the FIFO cannot be opened. */
  constructor(path: string, onLine: (line: string) => void) {
    this.#lines = new LineSplitter(onLine);
    // For writing too, so that it does not end between one writer and the next.
    this.#fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.#socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    this.#socket.on("data", (piece) => {
      this.#lines.push(piece);
    });
    // Reading a FIFO that this process itself holds open does not fail; if it does, there is nothing more to read.
    this.#socket.on("error", () => undefined);
  }

  /** The process is gone: tells what is left in the FIFO. */
  end(): void {
    if (this.#socket.destroyed) return;
    this.#drain();
    this.#lines.end();
    this.#socket.destroy();
  }

  #drain(): void {
    const piece = Buffer.alloc(64 * 1024);
    for (let total = 0; total < MAX_LEFTOVER_BYTES;) {
      const bytes = readAvailable(this.#fd, piece);
      if (bytes === 0) return;
      this.#lines.push(Buffer.from(piece.subarray(0, bytes)));
      total += bytes;
    }
  }
}

/** 0 where nothing is there to read. */
function readAvailable(fd: number, target: Buffer): number {
  try {
    return readSync(fd, target);
  } catch {
    return 0; // EAGAIN: it is empty.
  }
}
