import type { ChunkCase } from "../worker/types.js";
import type { Pending } from "./call.js";
import { observationJson } from "./observation_json.js";
import { caseSeed } from "./seed.js";

/** Payload bytes of a chunk beyond its first case. */
const MAX_CHUNK_BYTES = 4 * 1024 * 1024;

/** Takes the next cases out of a queue: at most `most`, and no more bytes than a chunk should have, but always one. */
export function cutChunk(queue: Pending[], most: number): Pending[] {
  let bytes = 0;
  let cases = 0;
  for (const pending of queue) {
    bytes += pending.bytes;
    if (cases === most || (cases > 0 && bytes > MAX_CHUNK_BYTES)) break;
    cases += 1;
  }
  return queue.splice(0, cases);
}

/** A case as a worker gets it. `caseFault` has refused cases without input, and those without output were run. */
export function chunkCase({ item, output, observed }: Pending, seed: bigint | undefined): ChunkCase {
  const { values } = item;
  if (values !== undefined && seed === undefined && observed === undefined) return values;
  return {
    input: item.input ?? NULL,
    output: output ?? item.output ?? NULL,
    expected: item.expected,
    seed: seed === undefined ? undefined : caseSeed(seed, item),
    observation: observed === undefined ? undefined : observationJson(observed),
  };
}

const NULL = new TextEncoder().encode("null");
