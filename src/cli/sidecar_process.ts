import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

import { splitLines } from "./cases/source.js";
import { CommandError } from "./exit.js";
import { withoutVariables } from "./options.js";
import { makePrivateFolder } from "./temporary_folder.js";

/** A sidecar that this command has started for itself. */
export interface SidecarProcess {
  readonly address: string;
  /** How it ended, in words, where it has; `undefined` while it runs. Waits a moment for an end that is under way. */
  ended(): Promise<string | undefined>;
  /** Ends it and removes its folder. Resolves when it is gone. */
  stop(): Promise<void>;
}

export interface SidecarProcessOptions {
  /** Options of `serve`, without where to listen. */
  readonly arguments: readonly string[];
  /** How long it may take to say that it listens. */
  readonly startTimeoutMs: number;
  /** Gets its log line by line. */
  readonly onLogLine: (line: string) => void;
}

/**
 * Starts a sidecar from this same program, behind a socket in a private folder. It ends when its standard input does,
 * that is with this process, however that ends, and then removes the folder that nobody else is left to remove.
 */
export async function startSidecarProcess(
  options: SidecarProcessOptions,
  signal: AbortSignal,
): Promise<SidecarProcess> {
  const folder = makePrivateFolder();
  const removeFolder = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", removeFolder);
  const address = `unix:${join(folder, "sidecar.sock")}`;
  const program = process.argv[1] ?? "";
  const child = spawn(
    process.execPath,
    [
      ...[...process.execArgv, program, "serve", `--listen=${address}`, "--stop-with-stdin"],
      ...[`--private-folder=${folder}`, ...options.arguments],
    ],
    {
      stdio: ["pipe", "pipe", "pipe"],
      env: withoutVariables(process.env),
      // A process group of its own: Ctrl-C on the terminal is for this command, which then ends the sidecar in order.
      detached: true,
    },
  );
  const exit = exitOf(child);
  const logEnds = tellLines(child.stderr, options.onLogLine);
  // Its end is told by `exit`; a broken pipe to it says nothing more.
  child.stdin.on("error", () => undefined);
  const stop = async (): Promise<void> => {
    child.stdin.end();
    const killing = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exit;
    clearTimeout(killing);
    // What it wrote last; but never longer than a moment, should something that it left behind hold the pipe open.
    await Promise.race([logEnds, after(END_GRACE_MS, undefined)]);
    removeFolder();
    process.off("exit", removeFolder);
  };
  try {
    await firstLine(child, exit, options.startTimeoutMs, signal);
  } catch (error) {
    child.kill("SIGKILL");
    await stop();
    throw error;
  }
  return { address, stop, ended: () => Promise.race([exit, after(END_GRACE_MS, undefined)]) };
}

/** A start fails in one of three ways, and says which: it ended, it said nothing in time, or it said something else. */
async function firstLine(
  { stdout }: ChildProcessWithoutNullStreams,
  exit: Promise<string>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const line = new Promise<string>((resolve) => void tellLines(stdout, resolve));
  const interrupted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener(
      "abort",
      () => {
        reject(new DOMException("interrupted while the sidecar started", "AbortError"));
      },
      { once: true },
    );
  });
  const timeout = new AbortController();
  const text = await Promise.race([
    line,
    interrupted,
    exit.then((how) => {
      throw new CommandError(`the sidecar did not start: it ${how}; what it wrote stands above`);
    }),
    after(timeoutMs, undefined, timeout.signal).then(() => {
      throw new CommandError(`the sidecar did not start: it said nothing within ${String(timeoutMs / 1000)} s`);
    }),
  ]).finally(() => {
    timeout.abort();
  });
  if (!HANDSHAKE.safeParse(parseJson(text)).success) {
    throw new CommandError(`the sidecar did not start: its first line is not the one expected: ${text.slice(0, 200)}`);
  }
}

/** Reads to the end, so that the sidecar never waits for a reader. Lines end at line feeds alone. */
async function tellLines(stream: AsyncIterable<Uint8Array>, tell: (line: string) => void): Promise<void> {
  for await (const [, line] of splitLines(stream)) tell(Buffer.from(line).toString("utf8"));
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      resolve(`could not be run: ${error.message}`);
    });
    child.once("exit", (code, signal) => {
      resolve(signal === null ? `ended with exit code ${String(code)}` : `was ended by ${signal}`);
    });
  });
}

function after<T>(milliseconds: number, value: T, cancelled?: AbortSignal): Promise<T> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds, value);
    cancelled?.addEventListener("abort", () => {
      clearTimeout(timer);
    });
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const HANDSHAKE = z.object({ addresses: z.array(z.string()).min(1), protocol: z.literal("skynet.scoring.v1") });

/** It has no running case to wait for when it is told to stop; then ending its workers takes a second at most. */
const STOP_TIMEOUT_MS = 10_000;
/** A connection breaks a moment before the process that broke it has been reaped. */
const END_GRACE_MS = 500;
