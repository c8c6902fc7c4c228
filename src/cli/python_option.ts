import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { choosePython } from "../worker/interpreter.js";
import { UsageError } from "./exit.js";
import { whyUnreadable } from "./input_file.js";

/**
 * Makes sure, before anything is started, that there is an interpreter where the user said so: a wrong path is no fault of the metric.
 * The error names where the path came from.
 *
 * @param given `--python` as the user gave it, for the error.
 */
export function checkPython(given: string, python: string | undefined, environment: NodeJS.ProcessEnv): void {
  const command = choosePython(python, environment);
  const why = whyNotRunnable(command, environment);
  if (why === undefined) return;
  if (python !== undefined) throw new UsageError(`${given}: ${why}; ${ADVICE}`);
  const active = environment["VIRTUAL_ENV"] ?? "";
  if (active !== "") {
    throw new UsageError(
      `VIRTUAL_ENV=${active}: its interpreter ${command} cannot be run: ${why}; activate another environment, or name an interpreter with --python`,
    );
  }
  throw new UsageError(
    `${command}: ${why} on the PATH; install Python 3.9 or newer, activate its virtual environment, or name it with --python`,
  );
}

function whyNotRunnable(command: string, environment: NodeJS.ProcessEnv): string | undefined {
  if (command.includes("/"))
    return isExecutable(command) ? undefined : (whyUnreadable(command) ?? "it cannot be executed");
  const folders = (environment["PATH"] ?? "").split(delimiter);
  return folders.some((folder) => isExecutable(join(folder, command))) ? undefined : "there is no such command";
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const ADVICE = "name an interpreter of Python 3.9 or newer";
