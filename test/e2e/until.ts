import { setTimeout as pause } from "node:timers/promises";

/** How often a condition is looked at: far below anything that a test measures. */
const LOOK_EVERY_MS = 10;

/** Far from what anything here takes on a busy machine; a test that has a promise to keep gives its own bound. */
export const PATIENCE_MS = 20_000;

/** Waits until `look` gives something other than `undefined` and `false`, and returns it; fails after `withinMs`, saying `what` was awaited. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = PATIENCE_MS,
): Promise<T> {
  const began = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() - began > withinMs) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await pause(LOOK_EVERY_MS);
  }
}

/** `promise`, or a failure after `withinMs` that says `what` was awaited. */
export async function within<T>(what: string, promise: Promise<T>, withinMs = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${withinMs} ms in vain for ${what}`)), withinMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
