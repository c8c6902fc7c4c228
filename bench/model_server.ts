import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A call as the scripted model server had it; times in milliseconds since the epoch. */
export interface ServedCall {
  readonly arrivedAt: number;
  readonly endedAt: number;
}

/** The scripted model server of the tests, in a process of its own. */
export interface ModelServerProcess {
  readonly pid: number;
  /** The base URL, ending in `/v1`. */
  readonly url: string;
  /** Every call so far, in the order of their arrival. Throws while one is in hand. */
  calls(): Promise<readonly ServedCall[]>;
  /** Ends it and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts the server, which lets each call wait for so long before it answers. */
export async function startModelServer(latencyMs: number, cwd: string): Promise<ModelServerProcess> {
  const args = ["test/model_server/run.mjs", "--latency", String(latencyMs), "--stop-with-stdin"];
  const child = spawn(process.execPath, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await ended;
  };
  try {
    const lines = createInterface({ input: child.stdout });
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const [line] = (await once(lines, "line", { signal })) as [string];
    const { url } = JSON.parse(line) as { readonly url: string };
    if (child.pid === undefined) throw new Error("the model server has no process id");
    return { pid: child.pid, url, calls: () => servedCalls(url), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function servedCalls(url: string): Promise<readonly ServedCall[]> {
  const response = await fetch(new URL("/control/requests", url));
  const requests = (await response.json()) as readonly { readonly arrivedAt: number; readonly endedAt?: number }[];
  return requests.map(({ arrivedAt, endedAt }) => {
    if (endedAt === undefined) throw new Error("the model server still has a call in hand");
    return { arrivedAt, endedAt };
  });
}

const START_TIMEOUT_MS = 20_000;
