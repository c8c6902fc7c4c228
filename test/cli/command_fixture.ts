import { type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startCommand } from "../e2e/command.js";
import { processesWith } from "../e2e/processes.js";
import { until, within } from "../e2e/until.js";

/** A folder to run commands in; what they start has its name in the environment, so that nothing of it can be left unseen. */
export class Workplace {
  readonly folder = mkdtempSync(join(tmpdir(), "skynet-cli-"));
  readonly env = { TMPDIR: mkdtempSync(join(this.folder, "tmp-")) };

  file(name: string, content: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  /** Results in a file, each parsed. */
  results(name: string): { index: number; id: string; score?: { value: number }; error?: { code: string } }[] {
    return this.read(name)
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { index: number; id: string });
  }

  /** Fails where a process or a temporary file is left; removes the folder. */
  async clear(): Promise<void> {
    const started = `TMPDIR=${this.env.TMPDIR}`;
    try {
      await until("no process is left", () => processesWith(started).length === 0);
      const left = readdirSync(this.env.TMPDIR);
      if (left.length > 0) throw new Error(`temporary files are left: ${left.join(", ")}`);
    } finally {
      for (const { pid } of processesWith(started)) process.kill(pid, "SIGKILL");
      rmSync(this.folder, { recursive: true });
    }
  }

  start(args: readonly string[]): RunningCommand {
    return new RunningCommand(startCommand(args, { cwd: this.folder, env: this.env, input: "" }));
  }
}

/** A command that runs, and what it has written so far. Its standard input stays open. */
export class RunningCommand {
  stdout = "";
  stderr = "";
  readonly #exit: Promise<number | string>;

  constructor(readonly child: ChildProcess) {
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.#exit = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        resolve(code ?? signal ?? "?");
      });
    });
  }

  /** Its exit code, or the signal that ended it. */
  ended(): Promise<number | string> {
    return within("the end of the command", this.#exit);
  }

  async firstLine(): Promise<Record<string, unknown>> {
    const line = await until("a first line is printed", () => /^(.*)\n/.exec(this.stdout)?.[1]);
    return JSON.parse(line) as Record<string, unknown>;
  }
}
