import { accessSync, constants, fstatSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { UsageError } from "../exit.js";
import { whyUnreadable, wordsFor } from "../input_file.js";

/** A file that the command reads, and what it is in words. */
export interface InputFile {
  readonly what: string;
  /** `undefined`: not given; `-`: standard input. */
  readonly path: string | undefined;
}

/**
 * Makes sure, before anything is started, that results can be written to `path` and that nothing which the command reads would be
 * lost by it. Files are told apart by device and inode, so that neither another spelling nor a link hides one.
 *
 * @param given the option as the user gave it, for the error.
 */
export function checkOutput(given: string, path: string, inputs: readonly InputFile[]): void {
  const output = identityOf(path);
  for (const { what, path: input } of inputs) {
    if (output === undefined || input === undefined) continue;
    if (identityOf(input) === output) throw new UsageError(`${given}: that is ${what}; give another file`);
  }
  const why = whyUnwritable(path);
  if (why !== undefined) throw new UsageError(`${given}: the file cannot be written: ${why}`);
}

/** `undefined` where there is none, or none that holds anything: a terminal, a pipe, a device. */
function identityOf(path: string): string | undefined {
  try {
    const found = path === "-" ? fstatSync(0, { bigint: true }) : statSync(path, { bigint: true });
    return found.isFile() ? `${String(found.dev)}:${String(found.ino)}` : undefined;
  } catch {
    return undefined;
  }
}

function whyUnwritable(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return whyUnreadable(path);
    accessSync(path, constants.W_OK);
    return undefined;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) return wordsFor(error);
  }
  const folder = dirname(path);
  try {
    if (!statSync(folder).isDirectory()) return `${folder} is not a folder`;
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? `there is no folder ${folder}` : `in ${folder}: ${wordsFor(error)}`;
  }
}
