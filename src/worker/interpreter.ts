import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../package_root.js";
import { howItEnded } from "./exit_words.js";
import type { ProcessExit, TemplateExit } from "./template.js";

/** The interpreter is older than 3.9; standard error says so in a whole sentence. */
const EXIT_TOO_OLD = 97;
/** The interpreter could not reach the sidecar's socket. */
const EXIT_NOT_REACHED = 98;

/** The folder from which interpreters take the package `skynet`. */
export function pythonFolder(): string {
  return join(packageRoot(), "python");
}

/** The program that an interpreter is given with `-c`: it also has to be readable for versions that are too old. */
export function bootProgram(): string {
  return readFileSync(join(pythonFolder(), "skynet", "_worker", "boot.py"), "utf8");
}

/** Which Python runs the metric: the one that the user named, else the active virtual environment's, else `python3`. */
export function choosePython(option: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  if (option !== undefined) return option;
  const active = environment["VIRTUAL_ENV"];
  return active === undefined || active === "" ? "python3" : join(active, "bin", "python");
}

/** Why an interpreter that never said hello did not start, in one line. */
export function startFailure(python: string, exit: TemplateExit): string {
  const { spawnError, exitCode, output } = exit;
  if (spawnError === "ENOENT") {
    return `the Python interpreter ${python} was not found; install Python 3.9 or newer, activate its virtual environment, or name one with --python`;
  }
  if (spawnError !== undefined) {
    return `the Python interpreter ${python} could not be started (${spawnError}); name another one with --python`;
  }
  if (exitCode === EXIT_TOO_OLD) return lastLine(output);
  if (exitCode === EXIT_NOT_REACHED) {
    return `the Python interpreter ${python} could not reach the sidecar's socket in its private folder: ${lastLine(output)}`;
  }
  return `the Python interpreter ${python} ${howItEnded(exit)} before it could load anything: ${lastLine(output)}; look whether it is Python 3.9 or newer, or name another one with --python`;
}

/** Why the load failed of an interpreter that died over it, in one line. */
export function loadDeath(exit: ProcessExit): string {
  return `the Python interpreter ${howItEnded(exit)} while it loaded the file; look at what the file does when it is imported`;
}

function lastLine(output: string): string {
  const text = output.trimEnd();
  return text === "" ? "it printed nothing" : text.slice(text.lastIndexOf("\n") + 1);
}
