import type { Socket } from "node:net";

/** What a client of HTTP/2 says first. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Nobody needs longer to say the first word; a port scanner, or a client that hangs, holds no socket. */
export const FIRST_BYTES_TIMEOUT_MS = 5_000;

export interface Protocols {
  http1(socket: Socket): void;
  http2(socket: Socket): void;
}

/**
 * Decides by a connection's first bytes what it speaks, and hands it on with those bytes put back. The preface may come in
 * pieces, as "P" and "RI * …", and "P" begins a POST as well. One that says nothing for `timeoutMs` is ended, and so is one that says the preface
 * alone.
 */
export function sniff(socket: Socket, protocols: Protocols, timeoutMs: number): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  // A client may reset the connection at any time: whoever takes it on has a handler too, and this one stays beside it.
  socket.on("error", () => undefined);
  socket.on("data", look);
  socket.on("end", leave);
  socket.on("close", stop);

  function look(chunk: Buffer): void {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, PREFACE.length);
    const isPreface = PREFACE.compare(seen, 0, compared, 0, compared) === 0;
    if (isPreface && compared < PREFACE.length) return;
    stop();
    socket.pause();
    socket.unshift(seen);
    if (isPreface) {
      // A session that is half closed has nobody to answer.
      socket.allowHalfOpen = false;
      protocols.http2(socket);
      endUnlessItGoesOn(socket, timeoutMs);
    } else {
      protocols.http1(socket);
      socket.resume();
    }
  }

  /** It left before it said what it wants. */
  function leave(): void {
    stop();
    socket.destroy();
  }

  function stop(): void {
    clearTimeout(timer);
    socket.off("data", look).off("end", leave).off("close", stop);
  }
}

/** Every client sends its SETTINGS, a frame of at least 9 bytes, right after the preface. One that has may then wait for as long as it likes. */
function endUnlessItGoesOn(socket: Socket, timeoutMs: number): void {
  const timer = setTimeout(() => {
    if (socket.bytesRead < PREFACE.length + FRAME_HEAD_BYTES) socket.destroy();
  }, timeoutMs);
  socket.once("close", () => {
    clearTimeout(timer);
  });
}

const FRAME_HEAD_BYTES = 9;
