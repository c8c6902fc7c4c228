import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The path of a file that lies beside the repository: the contract's vectors, and data for the larger tests. */
export function sharedFile(...parts: readonly string[]): string {
  const shared = process.env["SKYNET_SHARED"];
  if (shared === undefined) throw new Error("SKYNET_SHARED must name the folder that holds contract/ and data/");
  return join(shared, ...parts);
}

/** The objects of a JSON Lines file. */
export function readJsonLines<T>(path: string): T[] {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as T);
}
