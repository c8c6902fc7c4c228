import { ConnectionError, type ProviderReply } from "./provider.js";

/** Reads a reply's body to its end, as UTF-8. Rejects with `ConnectionError` where it breaks off or is too large. */
export async function readBody(reply: ProviderReply): Promise<string> {
  const bytes = await (reply.whole === undefined ? gather(reply.body) : reply.whole(MOST_BYTES));
  if (bytes === undefined) {
    throw new ConnectionError(`the provider's answer is larger than ${MOST_BYTES / 1024 ** 2} MiB`, false);
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

async function gather(body: AsyncIterable<Uint8Array>): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return undefined;
  }
  return Buffer.concat(chunks, bytes);
}

/** Far over any completion; so that a broken server cannot fill the memory. */
const MOST_BYTES = 64 * 1024 ** 2;
