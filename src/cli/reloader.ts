import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

import type { MetricDescription } from "../scoring/scorer.js";
import type { Log } from "../worker/log.js";
import { CommandError } from "./exit.js";
import { wordsFor } from "./input_file.js";

/**
 * Reloads on demand, one at a time: what asks while a load is under way gets one more load after it, since the file may
 * have changed after it was read.
 */
export class Reloader {
  #state: "idle" | "loading" | "loading, and asked again" = "idle";

  constructor(
    private readonly reload: () => Promise<MetricDescription>,
    private readonly log: Log,
  ) {}

  ask(reason: string): void {
    if (this.#state !== "idle") {
      this.#state = "loading, and asked again";
      return;
    }
    this.#state = "loading";
    void this.#load(reason);
  }

  async #load(reason: string): Promise<void> {
    try {
      const metric = await this.reload();
      const fields = { reason, metric_fingerprint: metric.fingerprint, load_ms: metric.loadMs };
      if (metric.loaded) this.log.info(fields, "the metric was loaded again");
      else this.log.error(fields, `the metric does not load: ${metric.loadError}`);
    } catch (error) {
      this.log.error({ reason, err: error }, "the metric could not be loaded again");
    }
    const isAskedAgain = this.#state === "loading, and asked again";
    this.#state = "idle";
    if (isAskedAgain) this.ask(reason);
  }
}

/**
 * Calls back when the file, or a Python file beside it, has changed and then been left alone for a moment. Watches the
 * folder: an editor that saves by renaming would leave a watch on the file itself with the old one.
 */
export function watchMetric(file: string, log: Log, changed: () => void): { close: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const watcher = openWatcher(dirname(file), (name) => {
    if (name !== null && name !== basename(file) && !name.endsWith(".py")) return;
    clearTimeout(timer);
    timer = setTimeout(changed, SETTLE_MS);
  });
  watcher.on("error", (error) => {
    log.error({ err: error }, "the metric's folder can no longer be watched; --watch has no effect from now on");
  });
  return {
    close: () => {
      clearTimeout(timer);
      watcher.close();
    },
  };
}

function openWatcher(folder: string, seen: (name: string | null) => void): FSWatcher {
  try {
    return watch(folder, (_event, name) => {
      seen(name);
    });
  } catch (error) {
    throw new CommandError(
      `--watch: ${folder} cannot be watched: ${wordsFor(error)}; leave --watch out, and send SIGHUP`,
    );
  }
}

/** Editors write in several steps; a file read in between would be half of one. */
const SETTLE_MS = 150;
