import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** Takes a variable out of this process's environment, so that nothing started from now on inherits it, nor finds it in /proc. */
export function forgetVariable(name: string): void {
  Reflect.deleteProperty(process.env, name);
  blankInitialVariable(name);
}

/**
 * Blanks a variable's value where Linux keeps the environment that this process was started with. A process's user can read that in
 * /proc, run code included, however long ago the variable was deleted. Returns false where the value is still there to be read.
 */
export function blankInitialVariable(name: string): boolean {
  if (process.platform !== "linux") return false;
  try {
    const environment = readFileSync("/proc/self/environ");
    const start = environmentStart(readFileSync("/proc/self/stat", "latin1"));
    const memory = openSync("/proc/self/mem", "r+");
    try {
      for (const { from, to } of valuesOf(name, environment)) {
        writeSync(memory, new Uint8Array(to - from), 0, to - from, start + from);
      }
    } finally {
      closeSync(memory);
    }
    return true;
  } catch {
    // No /proc, or a kernel that lets nobody write there.
    return false;
  }
}

/** Where the values of a variable stand in an environment of `NAME=value` entries, each ended by a zero byte. */
export function valuesOf(name: string, environment: Uint8Array): { readonly from: number; readonly to: number }[] {
  const bytes = Buffer.from(environment.buffer, environment.byteOffset, environment.byteLength);
  const beginning = Buffer.from(`${name}=`);
  const values: { from: number; to: number }[] = [];
  for (let entry = 0; entry < bytes.length;) {
    const zero = bytes.indexOf(0, entry);
    const to = zero < 0 ? bytes.length : zero;
    const from = entry + beginning.length;
    if (from < to && bytes.subarray(entry, from).equals(beginning)) values.push({ from, to });
    entry = to + 1;
  }
  return values;
}

/** The address, from the fields of /proc/PID/stat; the second may hold blanks and brackets itself. */
function environmentStart(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const start = Number(fields[ENV_START - STATE]);
  if (!Number.isSafeInteger(start) || start <= 0) throw new Error("the kernel does not tell where the environment is");
  return start;
}

/** Numbers of fields, as proc(5) counts them. */
const STATE = 3;
const ENV_START = 50;
