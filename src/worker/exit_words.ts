import type { ProcessExit } from "./template.js";

/** How a process ended, to stand after its name. */
export function howItEnded({ exitCode, signal }: ProcessExit): string {
  if (signal !== undefined) return `was killed by ${signal}`;
  return exitCode === undefined ? "ended, and nobody knows how" : `exited with code ${exitCode}`;
}
