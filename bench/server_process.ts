import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A server under measurement, in a process of its own. */
export interface ServerProcess {
  readonly pid: number;
  /** `host:port`. */
  readonly address: string;
  /** Ends it and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts a server whose first line on standard output is a JSON object with `addresses`, and waits for that line. */
export async function startServer(command: string, args: readonly string[], cwd: string): Promise<ServerProcess> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-LOG_CHARACTERS);
  });
  const ended = once(child, "exit");
  try {
    const address = await Promise.race([
      firstAddress(child),
      ended.then(() => {
        throw new Error("it ended before it was ready");
      }),
    ]);
    if (child.pid === undefined) throw new Error("it has no process id");
    return { pid: child.pid, address, stop: () => stop(child, ended) };
  } catch (error) {
    await stop(child, ended);
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot start ${[command, ...args].join(" ")}: ${reason}\n${log}`);
  }
}

const LOG_CHARACTERS = 4096;
const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;

async function firstAddress(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("it has no standard output");
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line", { signal: AbortSignal.timeout(START_TIMEOUT_MS) })) as [string];
  const { addresses } = JSON.parse(line) as { readonly addresses?: readonly string[] };
  const address = addresses?.[0];
  if (address === undefined) throw new Error(`its first line names no address: ${line}`);
  return address;
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(killer);
}
