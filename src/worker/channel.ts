import type { Socket } from "node:net";
import { encodeChunk } from "./chunk.js";
import { FrameKind, FrameReader, ProtocolError } from "./frames.js";
import type { Log } from "./log.js";
import { encodeMessage, parseMessage, type FromPython, type ToPython } from "./messages.js";
import { decodeRows, type RowsFrame } from "./rows.js";
import type { ChunkCase } from "./types.js";

export interface ChannelEvents {
  message(message: FromPython): void;
  rows(frame: RowsFrame): void;
  /** Nothing comes any more; all that came before has been told. `problem`: what broke the protocol, where something did. */
  closed(problem: string | undefined): void;
}

/** One process's connection to the sidecar, in typed messages. */
export interface Channel {
  /** Who hears of what comes from now on. */
  listen(events: ChannelEvents): void;
  /** Nothing that is sent to a process that is gone throws: `closed` tells. */
  send(message: ToPython): void;
  sendChunk(chunk: number, cases: readonly ChunkCase[]): void;
  /** Sends what is still to be sent, then says that no more comes. */
  end(): void;
  destroy(): void;
}

export class SocketChannel implements Channel {
  readonly #reader = new FrameReader((kind, payload) => {
    this.#frame(kind, payload);
  });
  #events: ChannelEvents = NOBODY;
  #problem: string | undefined;

  constructor(
    private readonly socket: Socket,
    log: Log,
  ) {
    socket.on("data", (piece: Buffer) => {
      this.#guard(() => {
        this.#reader.push(piece);
      });
    });
    // A process that dies while it is written to: EPIPE or ECONNRESET, then "close", which says enough.
    socket.on("error", (error) => {
      log.debug({ err: error }, "a connection to a Python process broke");
    });
    socket.on("close", (hadError) => {
      if (!hadError) {
        this.#guard(() => {
          this.#reader.end();
        });
      }
      this.#events.closed(this.#problem);
    });
  }

  listen(events: ChannelEvents): void {
    this.#events = events;
  }

  send(message: ToPython): void {
    if (this.socket.writable) this.socket.write(encodeMessage(message));
  }

  sendChunk(chunk: number, cases: readonly ChunkCase[]): void {
    if (!this.socket.writable) return;
    const pieces = encodeChunk(chunk, cases);
    if (pieces.length > 1) this.socket.cork();
    for (const piece of pieces) this.socket.write(piece);
    if (pieces.length > 1) this.socket.uncork();
  }

  end(): void {
    this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #frame(kind: FrameKind, payload: Buffer): void {
    // One piece can hold more frames than its reader still wants.
    if (this.socket.destroyed) return;
    switch (kind) {
      case FrameKind.message:
        this.#events.message(parseMessage(payload));
        return;
      case FrameKind.rows:
        this.#events.rows(decodeRows(payload));
        return;
      case FrameKind.chunk:
        throw new ProtocolError("a chunk came from a Python process; only the sidecar sends chunks");
    }
  }

  #guard(read: () => void): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#problem ??= error.message;
      this.socket.destroy();
    }
  }
}

const NOBODY: ChannelEvents = {
  message: () => undefined,
  rows: () => undefined,
  closed: () => undefined,
};
