import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { within } from "./until.js";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const BUNDLE = fileURLToPath(new URL("../../dist/skynet-scorer.js", import.meta.url));

/** Starts `skynet-scorer`, as it is published, with no variables of the caller's that would change what it does. */
export function startCommand(args: readonly string[], options: CommandOptions = {}): ChildProcess {
  if (!existsSync(BUNDLE))
    throw new Error("dist/skynet-scorer.js is missing: run `npm run build`, or all of `npm test`");
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SKYNET_|VITEST|NODE_|TEST$)/.test(name));
  return spawn(process.execPath, [BUNDLE, ...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...Object.fromEntries(inherited), ...options.env },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", options.stderr ?? "pipe"],
  });
}

/** Runs `skynet-scorer` to its end. */
export async function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandOutcome> {
  return finish(`skynet-scorer ${args.join(" ")}`, startCommand(args, options), options);
}

/** Runs another program to its end. Fails where it cannot be started. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandOutcome> {
  const child = spawn(program, [...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, ...options.env },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  return finish(`${program} ${args.join(" ")}`, child, options);
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What it reads on standard input; without it that is empty. */
  readonly input?: string | Uint8Array;
  /** The descriptor that becomes its standard error; without it a pipe. */
  readonly stderr?: number;
}

export interface CommandOutcome {
  /** `null` where a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const COMMAND_TIMEOUT_MS = 50_000;

async function finish(what: string, child: ChildProcess, { input }: CommandOptions): Promise<CommandOutcome> {
  const stdout = collect(child, "stdout");
  const stderr = collect(child, "stderr");
  // A program that refuses its input closes it early; its exit code and its words tell why.
  child.stdin?.on("error", () => undefined).end(input);
  try {
    const [code] = (await within(`the end of ${what}`, once(child, "close"), COMMAND_TIMEOUT_MS)) as [number | null];
    return { code, stdout: stdout(), stderr: stderr() };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

function collect(child: ChildProcess, name: "stdout" | "stderr"): () => string {
  const chunks: Buffer[] = [];
  child[name]?.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString("utf8");
}
