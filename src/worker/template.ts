import type { Channel } from "./channel.js";
import type { Log } from "./log.js";
import type { Hello, MetricReport, PrintedMessage, StartMethod } from "./messages.js";
import type { Outbox } from "./outbox.js";

/** How a process ended; both `undefined`: nobody knows. */
export interface ProcessExit {
  readonly exitCode: number | undefined;
  /** A name such as "SIGKILL". */
  readonly signal: string | undefined;
}

/** How a template ended. */
export interface TemplateExit extends ProcessExit {
  /** Whether it got so far as to say hello. */
  readonly saidHello: boolean;
  /** The system's code where no process came to be, such as "ENOENT". */
  readonly spawnError: string | undefined;
  /** The end of what it printed before it said hello. */
  readonly output: string;
}

/** A worker that has connected. */
export interface WorkerLink {
  readonly hello: Hello;
  /** When `hello` arrived, on `performance.now()`. */
  readonly receivedAt: number;
  readonly channel: Channel;
  readonly outbox: Outbox;
}

export interface LaunchOptions {
  /** The interpreter's path or command. */
  readonly python: string;
  readonly kind: "metric" | "run";
  /** The absolute path of the metric, or of the run code. */
  readonly file: string;
  /** Changes to the sidecar's own environment; `undefined` takes a variable out. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startMethod: StartMethod;
  readonly maxRowBytes: number;
  readonly log: Log;
}

/** What a template tells. Nothing is told before `launch` has returned, nor after `gone`. */
export interface TemplateEvents {
  hello(hello: Hello): void;
  /** It has loaded the file (`fork` alone). `forkHazards`: why forking is not safe; empty where it is. */
  loaded(metric: MetricReport, forkHazards: readonly string[]): void;
  /** It can start workers. */
  ready(): void;
  started(worker: number, pid: number): void;
  startFailed(worker: number, error: string): void;
  connected(worker: number, link: WorkerLink): void;
  ended(worker: number, exit: ProcessExit): void;
  printed(message: PrintedMessage): void;
  /** A line that a process wrote to its descriptors 1 or 2 directly; worker 0 is the template. */
  output(worker: number, line: string): void;
  /** Its process has ended. Its workers die with it, and nothing is told of them any more. */
  gone(exit: TemplateExit): void;
}

/** A process that starts, reaps and signals workers. */
export interface Template {
  start(worker: number): void;
  /** Does nothing for a worker that has ended. */
  signal(worker: number, signal: number, group: boolean): void;
  /** What is known of a worker that has ended is no longer needed. */
  forget(worker: number): void;
  /** Kills and reaps every worker and ends. Resolves when no process is left and the folder is gone. */
  stop(): Promise<void>;
}

/** Starts a template. Throws only where the sidecar itself cannot make its folder or sockets. */
export type LaunchTemplate = (options: LaunchOptions, events: TemplateEvents) => Template;
