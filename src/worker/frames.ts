/** What a frame carries; the numbers are the protocol's. */
export const FrameKind = { message: 1, chunk: 2, rows: 3 } as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** The most that a frame's length may say, kind and payload together. */
export const MAX_FRAME_BYTES = 1024 ** 3;

/** Length and kind. */
export const FRAME_HEADER_BYTES = 5;

const LENGTH_BYTES = 4;

/** What came does not follow docs/worker-protocol.md: an error of the connection. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/**
 * Cuts a stream of bytes into frames. A frame that lies whole in one piece is handed on without a copy, as a view of that piece;
 * one that comes in pieces is put together once.
 */
export class FrameReader {
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Bytes until the held frame is whole, or until its header can be read. */
  #needed = FRAME_HEADER_BYTES;

  constructor(private readonly onFrame: (kind: FrameKind, payload: Buffer) => void) {}

  /** Takes the next bytes. Throws `ProtocolError` at a frame that is too long, empty or of an unknown kind. */
  push(piece: Buffer): void {
    let rest = piece;
    while (this.#heldBytes > 0 && rest.length > 0) rest = this.#fillHeld(rest);
    let at = 0;
    while (rest.length - at >= FRAME_HEADER_BYTES) {
      const end = at + frameBytes(rest, at);
      if (end > rest.length) break;
      this.#emit(rest, at, end);
      at = end;
    }
    if (at < rest.length) this.#hold(at === 0 ? rest : rest.subarray(at));
  }

  /** The stream has ended. Throws `ProtocolError` in the middle of a frame. */
  end(): void {
    if (this.#heldBytes === 0) return;
    throw new ProtocolError(`the connection ended in the middle of a frame, after ${this.#heldBytes} bytes of it`);
  }

  /** Completes the held frame as far as `piece` reaches; returns what is left of the piece. */
  #fillHeld(piece: Buffer): Buffer {
    const missing = this.#needed - this.#heldBytes;
    if (piece.length < missing) {
      this.#held.push(piece);
      this.#heldBytes += piece.length;
      return EMPTY;
    }
    const held = Buffer.concat([...this.#held, piece.subarray(0, missing)], this.#needed);
    this.#held = [];
    this.#heldBytes = 0;
    const bytes = frameBytes(held, 0);
    if (bytes === held.length) this.#emit(held, 0, bytes);
    else this.#hold(held);
    return piece.subarray(missing);
  }

  #hold(start: Buffer): void {
    this.#held = [start];
    this.#heldBytes = start.length;
    this.#needed = start.length < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES : frameBytes(start, 0);
  }

  #emit(bytes: Buffer, at: number, end: number): void {
    this.onFrame(frameKind(bytes, at), bytes.subarray(at + FRAME_HEADER_BYTES, end));
  }
}

/** Writes a frame's header for a payload of `payloadBytes` at the start of `target`. Throws `RangeError` where that is too long. */
export function writeFrameHeader(target: Buffer, kind: FrameKind, payloadBytes: number): void {
  if (payloadBytes + 1 > MAX_FRAME_BYTES) {
    throw new RangeError(`a frame of ${payloadBytes + 1} bytes is over the limit of ${MAX_FRAME_BYTES}`);
  }
  target.writeUInt32LE(payloadBytes + 1, 0);
  target[LENGTH_BYTES] = kind;
}

/** The whole frame of a short payload. */
export function encodeFrame(kind: FrameKind, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  writeFrameHeader(frame, kind, payload.length);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** Length of the frame whose header stands at `at`, its length field included. What is wrong with it shows before its payload has come. */
function frameBytes(bytes: Buffer, at: number): number {
  const length = bytes.readUInt32LE(at);
  if (length === 0) throw new ProtocolError("a frame has length 0; it must at least have a kind");
  if (length > MAX_FRAME_BYTES) {
    throw new ProtocolError(`a frame says that it has ${length} bytes; the limit is ${MAX_FRAME_BYTES}`);
  }
  frameKind(bytes, at);
  return LENGTH_BYTES + length;
}

function frameKind(bytes: Buffer, at: number): FrameKind {
  const kind = bytes[at + LENGTH_BYTES];
  if (kind === FrameKind.message || kind === FrameKind.chunk || kind === FrameKind.rows) return kind;
  throw new ProtocolError(`a frame is of kind ${kind}; the kinds are 1, 2 and 3`);
}

const EMPTY = Buffer.alloc(0);
