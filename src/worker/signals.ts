import { constants } from "node:os";

/** The name of a signal's number on this system, such as "SIGKILL"; `signal 64` where it has none. */
export function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return found === undefined ? `signal ${number}` : found[0];
}
