import { accessSync, constants, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CommandError, UsageError } from "./exit.js";
import { wordsFor } from "./input_file.js";

/** Makes sure, before anything is started, that private folders for sockets can be made. */
export function checkTemporaryFolder(environment: NodeJS.ProcessEnv): void {
  const folder = tmpdir();
  const why = whyUnusable(folder);
  if (why === undefined) return;
  const name = VARIABLES.find((variable) => (environment[variable] ?? "") !== "");
  const given = name === undefined ? `the temporary folder ${folder}` : `${name}=${environment[name] ?? ""}`;
  throw new UsageError(`${given}: ${why}; set TMPDIR to a folder that exists and can be written`);
}

/** A new folder of mode 0700, whose path is short enough for a socket in it. */
export function makePrivateFolder(): string {
  const prefix = "skynet-scorer-";
  const isShort = Buffer.byteLength(join(tmpdir(), prefix)) < 70;
  const parent = isShort ? tmpdir() : "/tmp";
  try {
    return mkdtempSync(join(parent, prefix));
  } catch (error) {
    throw new CommandError(
      `no private folder can be made in ${parent}: ${wordsFor(error)}; set TMPDIR to another folder`,
    );
  }
}

function whyUnusable(folder: string): string | undefined {
  try {
    if (!statSync(folder).isDirectory()) return "it is not a folder";
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? "there is no such folder" : wordsFor(error);
  }
}

/** In the order in which Node looks at them. */
const VARIABLES = ["TMPDIR", "TMP", "TEMP"] as const;
