/** Why a command has to end early. */
export type StopReason = "SIGINT" | "SIGTERM" | "SIGHUP" | "stdin";

/**
 * Aborts at the first of `signals`; the second ends the process at once, since whoever sends two means it.
 * `dispose` gives the signals back.
 */
export function abortOn(
  signals: readonly NodeJS.Signals[],
  secondExitCode: number,
): { signal: AbortSignal; dispose: () => void } {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(secondExitCode);
    controller.abort(name);
  };
  for (const name of signals) process.on(name, stop);
  return {
    signal: controller.signal,
    dispose: () => {
      for (const name of signals) process.off(name, stop);
    },
  };
}

/** Resolves when the signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      "abort",
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
