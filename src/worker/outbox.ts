import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { ProtocolError } from "./frames.js";
import { decodePackedRows, nanoseconds } from "./rows.js";
import type { Row } from "./types.js";

/** What a worker has left for the sidecar to see. */
export interface OutboxContents {
  readonly chunk: number;
  /** The case in hand; `undefined` between cases. */
  readonly position: number | undefined;
  /** When that case began, on the worker's monotonic clock. */
  readonly beganNs: number;
  /** Finished rows that it has not sent, or has sent just now. */
  readonly rows: readonly Row[];
}

/** Seen from the sidecar: read at any time, and after the worker's death. */
export interface Outbox {
  /** `undefined` where the worker is changing it too fast to read it: then no case is slow. */
  read(): OutboxContents | undefined;
  /** Asks the worker to take no further case of the chunk. */
  recall(chunk: number): void;
  close(): void;
}

const OUTBOX_BYTES = 64 * 1024;
const HEADER_BYTES = 64;
const RECALL_AT = 20;
const NONE_IN_HAND = 0xffffffff;
/** Two equal reads in a row take two tries; a worker that is busy with short cases may spoil some. */
const MOST_READS = 6;

/** Two for all outboxes: a read ends before the next one begins. */
let current = Buffer.alloc(OUTBOX_BYTES);
let previous = Buffer.alloc(OUTBOX_BYTES);

/** The worker maps the file, the sidecar reads and writes it by position: one page cache, so both see the same. */
export class FileOutbox implements Outbox {
  #fd: number | undefined;

  /** Throws where the file cannot be opened. */
  constructor(path: string) {
    this.#fd = openSync(path, "r+");
  }

  read(): OutboxContents | undefined {
    if (this.#fd === undefined) return undefined;
    let before = readOnce(this.#fd, current);
    for (let reads = 1; reads < MOST_READS; reads++) {
      [current, previous] = [previous, current];
      const now = readOnce(this.#fd, current);
      if (now === before && current.compare(previous, 0, now, 0, now) === 0) return contents(current, now);
      before = now;
    }
    return undefined;
  }

  recall(chunk: number): void {
    if (this.#fd !== undefined) writeSync(this.#fd, Buffer.of(chunk & 0xff), 0, 1, RECALL_AT);
  }

  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Reads the header, and the rows where there are any; returns how much of `target` that is. */
function readOnce(fd: number, target: Buffer): number {
  if (readSync(fd, target, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 0;
  const rowBytes = Math.min(target.readUInt32LE(4), OUTBOX_BYTES - HEADER_BYTES);
  if (rowBytes === 0) return HEADER_BYTES;
  return readSync(fd, target, 0, HEADER_BYTES + rowBytes, 0);
}

function contents(bytes: Buffer, length: number): OutboxContents | undefined {
  if (length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const position = view.getUint32(0, true);
  return {
    chunk: view.getUint32(16, true),
    position: position === NONE_IN_HAND ? undefined : position,
    beganNs: nanoseconds(view, 8),
    rows: length === HEADER_BYTES ? [] : savedRows(bytes.subarray(HEADER_BYTES, length)),
  };
}

/** What a metric has scribbled over is no result. */
function savedRows(packed: Buffer): readonly Row[] {
  try {
    return decodePackedRows(new Uint8Array(packed));
  } catch (error) {
    if (error instanceof ProtocolError) return [];
    throw error;
  }
}
