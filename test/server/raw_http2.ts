import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { Socket } from "node:net";

/** A session of bare HTTP/2, which reads and sends only what it is told to. */
export function openSession(address: string): ClientHttp2Session {
  // In megabytes; by default a session refuses to queue more than 10.
  const session = connect(`http://${address}`, { maxSessionMemory: 1_000 });
  session.on("error", () => undefined);
  return session;
}

/** Opens a gRPC call. Nothing of its response is read before the caller listens for data. */
export function openCall(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc+proto",
    te: "trailers",
  });
  stream.on("error", () => undefined);
  return stream;
}

/** A message as gRPC frames it. */
export function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Reads a response to its end. */
export async function readAll<T extends DescMessage>(stream: ClientHttp2Stream, schema: T): Promise<MessageShape<T>[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const all = Buffer.concat(chunks);
  const messages: MessageShape<T>[] = [];
  for (let at = 0; at < all.length;) {
    const end = at + 5 + all.readUInt32BE(at + 1);
    messages.push(fromBinary(schema, all.subarray(at + 5, end)));
    at = end;
  }
  return messages;
}

/** Everything that a socket receives until it is closed. */
export async function received(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  socket.on("error", () => undefined);
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  return text;
}

/** Resolves once `read` has given the same number for a while: whoever makes it grow has stopped. */
export async function settled(read: () => number): Promise<number> {
  let last = read();
  for (let unchanged = 0; unchanged < 30; unchanged++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const now = read();
    if (now !== last) unchanged = 0;
    last = now;
  }
  return last;
}
