import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { ScoringClient } from "./client.js";
import { startCommand } from "./command.js";
import { isAlive, type ProcessEntry, processesWith } from "./processes.js";
import { PATIENCE_MS, until, within } from "./until.js";

/** How a sidecar is started. */
export interface SidecarOptions {
  /** The metric's path. */
  readonly metric: string;
  /** More options for `skynet-scorer serve`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Without it, a free port on 127.0.0.1. */
  readonly listen?: "unix socket";
}

/** The first line on standard output. */
export interface ReadyLine {
  readonly addresses: readonly string[];
  readonly pid: number;
  readonly [name: string]: unknown;
}

/** A line on standard error. */
export interface LogLine {
  readonly level: number | string;
  readonly msg: string;
  readonly [name: string]: unknown;
}

/**
 * A real sidecar from the bundle, with temporary files in a folder of its own. That folder's name stands in the environment of
 * everything that the sidecar and its metric start, which is how `stop` proves that nothing is left.
 */
export class Sidecar {
  readonly client: ScoringClient;
  readonly #exited: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  #stopped: Promise<void> | undefined;

  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    readonly ready: ReadyLine,
  ) {
    this.client = new ScoringClient(this.address);
    this.#exited = hasEnded(child)
      ? Promise.resolve([child.exitCode, child.signalCode])
      : (once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>);
  }

  static async start(options: SidecarOptions): Promise<Sidecar> {
    const folder = mkdtempSync(join(tmpdir(), "skynet-e2e-"));
    mkdirSync(join(folder, "tmp"));
    const listen = options.listen === undefined ? "127.0.0.1:0" : `unix:${join(folder, "s")}`;
    // A file takes whatever is logged at once; on a pipe the sidecar drops what its reader is too slow for.
    const stderr = openSync(join(folder, LOG), "a");
    const child = startCommand(["serve", "--metric", options.metric, "--listen", listen, ...(options.args ?? [])], {
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { ...options.env, TMPDIR: join(folder, "tmp") },
      stderr,
    });
    closeSync(stderr);
    try {
      return new Sidecar(child, folder, await readyLine(child));
    } catch (error) {
      child.kill("SIGKILL");
      const log = readFileSync(join(folder, LOG), "utf8");
      rmSync(folder, { recursive: true, force: true });
      throw new Error(`the sidecar did not start: ${String(error)}\n${log}`, { cause: error });
    }
  }

  get pid(): number {
    return this.ready.pid;
  }

  /** What it has logged so far. */
  get log(): readonly LogLine[] {
    const lines = readFileSync(join(this.folder, LOG), "utf8").split("\n");
    // What stands after the last line end is not whole yet.
    return lines.slice(0, -1).map(parseLog);
  }

  get address(): string {
    const [address] = this.ready.addresses;
    if (address === undefined)
      throw new Error(`the sidecar's first line names no address: ${JSON.stringify(this.ready)}`);
    return address;
  }

  /** The sidecar's own process, the template, the workers, and whatever the metric started. */
  processes(): ProcessEntry[] {
    return processesWith(`TMPDIR=${join(this.folder, "tmp")}`);
  }

  /** The forks of the template, or the interpreters that it spawned. */
  workers(): ProcessEntry[] {
    const all = this.processes();
    const templates = new Set(all.filter(({ parent }) => parent === this.pid).map(({ pid }) => pid));
    return all.filter(({ parent }) => templates.has(parent));
  }

  /** What the sidecar keeps while it runs, and must not leave. */
  temporaryFiles(): string[] {
    return readdirSync(join(this.folder, "tmp"));
  }

  /** The first line that fits, now or later. */
  logged(what: string, fits: (line: LogLine) => boolean): Promise<LogLine> {
    return until(`the log holds ${what}`, () => this.log.find(fits));
  }

  /** A line that was printed by the metric. */
  printed(text: string): Promise<LogLine> {
    return this.logged(
      `the printed line ${JSON.stringify(text)}`,
      (line) => "stream" in line && line.msg.includes(text),
    );
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** How the process ended, once it has. */
  exited(): Promise<[code: number | null, signal: NodeJS.Signals | null]> {
    return within("the end of the sidecar", this.#exited, PATIENCE_MS);
  }

  /** Ends it, unless it has ended, and fails where anything of it is left. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.client.close();
    try {
      if (!hasEnded(this.child)) {
        this.signal("SIGTERM");
        const [code, signal] = await this.exited();
        if (code !== 0)
          throw new Error(`the sidecar ended with ${signal ?? `exit code ${code}`} instead of 0\n${this.#lastLog()}`);
      }
      await this.nothingLeft(PATIENCE_MS);
    } finally {
      this.child.kill("SIGKILL");
      for (const { pid } of this.processes()) process.kill(pid, "SIGKILL");
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  /** Resolves when no process and no temporary file is left; fails after `withinMs`. */
  async nothingLeft(withinMs: number): Promise<void> {
    const left = (): unknown[] => [...this.processes().filter(({ pid }) => isAlive(pid)), ...this.temporaryFiles()];
    await until("nothing of the sidecar is left", () => left().length === 0, withinMs).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(left())}`);
    });
  }

  #lastLog(): string {
    return this.log
      .slice(-5)
      .map((line) => JSON.stringify(line))
      .join("\n");
  }
}

/** The sidecar's standard error, in its folder. */
const LOG = "log.jsonl";

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function readyLine(child: ChildProcess): Promise<ReadyLine> {
  if (child.stdout === null) throw new Error("it has no standard output");
  const lines = createInterface({ input: child.stdout });
  const first = once(lines, "line") as Promise<[string]>;
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`it ended with exit code ${String(code)} before its first line`);
  });
  // One of the two comes first, and the other does not matter any more.
  ended.catch(() => undefined);
  const [line] = await within("its first line", Promise.race([first, ended]));
  return JSON.parse(line) as ReadyLine;
}

/** What is not JSON is a line all the same: a test will want to see it. */
function parseLog(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { level: "text", msg: line };
  }
}
