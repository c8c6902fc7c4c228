import { ConnectionError, type ProviderReply } from "./provider.js";

/** Reads a reply's body to its end, as UTF-8. Rejects with `ConnectionError` where it breaks off or is too large. */
export async function readBody(reply: ProviderReply): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of reply.body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_BYTES)
      throw new ConnectionError(`the provider's answer is larger than ${MOST_BYTES / 1024 ** 2} MiB`, false);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

/** Far over any completion; so that a broken server cannot fill the memory. */
const MOST_BYTES = 64 * 1024 ** 2;
