import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Whether the tests that need files from beside the repository are to run: where the folder is there, and in CI
 * (SKYNET_ALL_TOOLS is 1), where it must be.
 */
export function hasShared(): boolean {
  return process.env["SKYNET_ALL_TOOLS"] === "1" || existsSync(sharedFile());
}

/** The path of a file in the folder beside the repository, or in SKYNET_SHARED: the contract's vectors, and larger data. */
export function sharedFile(...parts: readonly string[]): string {
  return join(process.env["SKYNET_SHARED"] ?? BESIDE, ...parts);
}

/** A file of the contract's vectors; none where the tests that need them are left out. */
export function contractVectors<T>(name: string): T[] {
  return hasShared() ? readJsonLines<T>(sharedFile("contract", name)) : [];
}

const BESIDE = fileURLToPath(new URL("../../../shared", import.meta.url));

/** The objects of a JSON Lines file. */
export function readJsonLines<T>(path: string): T[] {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as T);
}
