import { createHash } from "node:crypto";

import type { Case } from "./case.js";

/** The seed of one case: the same for the same `--seed` and the same id (or index), in any worker and any order. */
export function caseSeed(seed: bigint, item: Case): bigint {
  const name = item.id === "" ? `index:${item.index}` : `id:${item.id}`;
  return createHash("sha256").update(`${seed}:${name}`).digest().readBigUInt64LE(0);
}
