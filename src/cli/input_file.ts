import { accessSync, constants, statSync } from "node:fs";

/** Why a file cannot be read, in the words of every error about one; `undefined` where it can. */
export function whyUnreadable(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return READ_ERRORS["EISDIR"];
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    const why = wordsFor(error);
    // A shell replaces it at the beginning of a word alone, which `--metric=~/metric.py` does not have.
    return path.startsWith("~/") ? `${why}; the shell has not replaced ~: write the whole path` : why;
  }
}

/** What went wrong with a file, for people. */
export function wordsFor(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return READ_ERRORS[code] ?? (error instanceof Error ? error.message : String(error));
}

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "permission denied",
};
