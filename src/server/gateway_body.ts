import type { IncomingMessage, ServerResponse } from "node:http";

/** A request's body as text; `undefined` where it is larger than allowed. The connection stays usable, so that the caller can be told. */
export async function readRequest(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

/** Resolves when there is room for more, or the caller is gone. */
export async function write(response: ServerResponse, part: Uint8Array): Promise<void> {
  if (response.write(part) || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}
