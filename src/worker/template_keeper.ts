import { basename } from "node:path";
import { howItEnded } from "./exit_words.js";
import { loadDeath, startFailure } from "./interpreter.js";
import type { Log } from "./log.js";
import type { MetricReport, StartMethod } from "./messages.js";
import type { StartFacts } from "./metric_report.js";
import type { LaunchOptions, LaunchTemplate, Template, TemplateEvents, TemplateExit } from "./template.js";

/** An interpreter that takes longer until it says hello will not. */
export const HELLO_TIMEOUT_MS = 30_000;

export interface KeeperOptions {
  readonly launch: LaunchTemplate;
  readonly python: string;
  readonly kind: "metric" | "run";
  readonly file: string;
  readonly environment: LaunchOptions["environment"];
  readonly startMethod: "auto" | StartMethod;
  readonly loadTimeoutMs: number;
  readonly maxRowBytes: number;
}

export interface KeeperEvents extends Omit<TemplateEvents, "hello" | "loaded" | "gone"> {
  /** The template has loaded the metric; `ready` follows. Not told of one that is replaced as it must not fork. */
  loaded(report: MetricReport): void;
  /** There is no template any more, and no worker that it started. */
  lost(reason: string, wasReady: boolean): void;
}

/** Has at most one template at a time, and decides how its workers start. */
export class TemplateKeeper {
  #template: Template | undefined;
  #isReady = false;
  #isClosed = false;
  #startMethod: StartMethod;
  #startMethodReason = "";
  #pythonVersion = "";
  #deadline: NodeJS.Timeout | undefined;
  /** Templates that are on their way out. */
  readonly #stopping = new Set<Promise<void>>();

  constructor(
    private readonly options: KeeperOptions,
    private readonly events: KeeperEvents,
    private readonly log: Log,
  ) {
    const { startMethod } = options;
    if (startMethod !== "auto") {
      this.#startMethod = startMethod;
    } else if (process.platform === "linux") {
      this.#startMethod = "fork";
    } else {
      this.#startMethod = "spawn";
      this.#startMethodReason = `forking a process that has loaded libraries is not safe on ${process.platform}`;
    }
  }

  /** The template that can start workers. */
  get template(): Template | undefined {
    return this.#isReady ? this.#template : undefined;
  }

  get facts(): StartFacts {
    return {
      pythonVersion: this.#pythonVersion,
      startMethod: this.#startMethod,
      startMethodReason: this.#startMethodReason,
    };
  }

  /** Starts a template, where there is none. What comes of it is told, and never within this call. */
  launch(): void {
    if (this.#template !== undefined || this.#isClosed) return;
    const { launch, ...options } = this.options;
    const { python } = options;
    this.#isReady = false;
    let template: Template;
    try {
      template = launch(
        { ...options, startMethod: this.#startMethod, log: this.log },
        this.#eventsOf(() => template),
      );
    } catch (error) {
      this.log.error({ err: error }, "the sidecar cannot make the private folder and sockets of its Python processes");
      queueMicrotask(() => {
        this.#lose(`no Python process can be started (${codeOf(error)}); look at the sidecar's log`);
      });
      return;
    }
    this.#template = template;
    this.#setDeadline(
      HELLO_TIMEOUT_MS,
      `the Python interpreter ${python} did not start within ${HELLO_TIMEOUT_MS / 1000} s`,
    );
  }

  /** Gives the template up. `lost` is told at once. */
  discard(reason: string): void {
    const template = this.#template;
    if (template === undefined) return;
    this.#template = undefined;
    this.#stop(template);
    this.#lose(reason);
  }

  /** Ends every process. Nothing is told any more but what workers still say. Resolves when nothing is left. */
  async close(): Promise<void> {
    clearTimeout(this.#deadline);
    this.#isClosed = true;
    const template = this.#template;
    // What it still says of its load is nothing to act on.
    this.#template = undefined;
    if (template !== undefined) this.#stop(template);
    await Promise.all(this.#stopping);
  }

  #eventsOf(self: () => Template): TemplateEvents {
    const current = (): boolean => this.#template === self();
    const { events } = this;
    return {
      hello: (hello) => {
        if (!current()) return;
        this.#pythonVersion = hello.python;
        const { file, loadTimeoutMs } = this.options;
        // Its path is for whoever reads the log, and no client's business.
        this.log.info(
          { about: "interpreter", python: hello.executable },
          `${basename(file)} is run by Python ${hello.python}`,
        );
        this.#setDeadline(loadTimeoutMs, loadTimeout(file, loadTimeoutMs));
      },
      loaded: (report, hazards) => {
        if (current()) this.#loaded(report, hazards);
      },
      ready: () => {
        if (!current()) return;
        clearTimeout(this.#deadline);
        this.#isReady = true;
        events.ready();
      },
      gone: (exit) => {
        if (current()) this.#lose(this.#whyGone(exit));
      },
      // Of workers, and what is printed, also while it stops.
      started: events.started.bind(events),
      startFailed: events.startFailed.bind(events),
      connected: events.connected.bind(events),
      ended: events.ended.bind(events),
      printed: events.printed.bind(events),
      output: events.output.bind(events),
    };
  }

  #loaded(report: MetricReport, hazards: readonly string[]): void {
    const reason = hazards.join("; ");
    if (hazards.length === 0 || report.problems.length > 0) {
      this.events.loaded(report);
    } else if (this.options.startMethod === "fork") {
      this.log.warn({ hazards }, `workers fork, as asked, though that is not safe with this file: ${reason}`);
      this.events.loaded(report);
    } else {
      this.log.info({ hazards }, `workers do not fork, each loads the file for itself: ${reason}`);
      this.#startMethod = "spawn";
      this.#startMethodReason = reason;
      const unsafe = this.#template;
      this.#template = undefined;
      if (unsafe !== undefined) this.#stop(unsafe);
      this.launch();
    }
  }

  #stop(template: Template): void {
    const stopped = template.stop();
    this.#stopping.add(stopped);
    void stopped.then(() => this.#stopping.delete(stopped));
  }

  #lose(reason: string): void {
    const wasReady = this.#isReady;
    clearTimeout(this.#deadline);
    this.#template = undefined;
    this.#isReady = false;
    this.events.lost(reason, wasReady);
  }

  #whyGone(exit: TemplateExit): string {
    if (!exit.saidHello) return startFailure(this.options.python, exit);
    if (!this.#isReady && this.#startMethod === "fork") return loadDeath(exit);
    return `the process that starts workers ${howItEnded(exit)}`;
  }

  #setDeadline(milliseconds: number, reason: string): void {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => {
      this.discard(reason);
    }, milliseconds);
  }
}

/** Why a load was given up, in one line. */
export function loadTimeout(file: string, milliseconds: number): string {
  return `${basename(file)} did not load within ${milliseconds / 1000} s; make what it does at import faster, or give --load-timeout more seconds`;
}

/** The system's word for an error, such as ENOSPC: its message names paths. */
function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "an error of the sidecar's own";
}
