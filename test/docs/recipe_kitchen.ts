import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";

import type { Recipe } from "./recipes.js";

/** What the recipes say, and what is replaced by the address that the test's own sidecar has. */
const WRITTEN_ADDRESS = "localhost:50051";
/** The same for the model server. */
const WRITTEN_MODELS = "http://127.0.0.1:8080/v1";
const WRITTEN_CLONE = "/path/to/clone";
const OFFLINE = { npm_config_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };

/** Runs recipes as a reader would: in a folder of their own, with the built command where `npx` finds it. */
export class RecipeKitchen {
  readonly folder = mkdtempSync(join(tmpdir(), "skynet-recipes-"));
  private readonly servers: { readonly process: ChildProcess; readonly pid: number }[] = [];
  private address = WRITTEN_ADDRESS;
  private models = WRITTEN_MODELS;

  /** @param options `contents`: a folder whose files the recipes find in theirs; `isInstalled`: false where a recipe installs the command */
  constructor({ contents, isInstalled = true }: { readonly contents?: string; readonly isInstalled?: boolean } = {}) {
    if (contents !== undefined) cpSync(contents, this.folder, { recursive: true });
    if (!isInstalled) return;
    const bin = join(this.folder, "node_modules", ".bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(BUNDLE, join(bin, "skynet-scorer"));
  }

  async run(recipe: Recipe): Promise<void> {
    switch (recipe.kind) {
      case "file":
        writeFileSync(join(this.folder, recipe.argument), recipe.text);
        return;
      case "tested":
        return this.runCommand(recipe);
      case "serve":
        return this.serve(recipe);
      case "models":
        return this.serveModels(recipe);
      case "install":
        return this.install(recipe);
      case "begins":
        expect(readFileSync(join(this.folder, recipe.argument), "utf8")).toMatch(beginning(recipe.text));
    }
  }

  /** Ends what still serves and removes the folder. */
  async close(): Promise<void> {
    for (const { process: server, pid } of this.servers) {
      const closed = once(server, "close");
      process.kill(pid, "SIGTERM");
      await closed;
    }
    rmSync(this.folder, { recursive: true });
  }

  /** Without a network, which an installation from a folder does not need. */
  private async install({ text, ...recipe }: Recipe): Promise<void> {
    expect(text).toContain(WRITTEN_CLONE);
    await this.runCommand({ ...recipe, text: text.replace(WRITTEN_CLONE, JSON.stringify(resolve("."))) }, OFFLINE);
    expect(existsSync(join(this.folder, "node_modules", ".bin", "skynet-scorer"))).toBe(true);
  }

  private async runCommand({ text, argument }: Recipe, env: Record<string, string> = {}): Promise<void> {
    const child = this.spawn(text, { env });
    let output = "";
    child.stdout?.on("data", (data: Buffer) => (output += data.toString()));
    child.stderr?.on("data", (data: Buffer) => (output += data.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    expect(code, output).toBe(0);
    for (const expected of argument.split("; ")) expect(output).toContain(expected);
  }

  /** Resolves when the sidecar has told its address. */
  private async serve({ text }: Recipe): Promise<void> {
    const child = this.spawn(`exec ${text}`, { env: { SKYNET_SCORER_LISTEN: "127.0.0.1:0" } });
    const { addresses, pid } = JSON.parse(await this.firstLine(child)) as { addresses: string[]; pid: number };
    this.servers.push({ process: child, pid });
    this.address = addresses[0] ?? "";
    expect(this.address).toMatch(/^127\.0\.0\.1:\d+$/);
  }

  /** Of npm's script the program that it names is run, in the top folder as npm would, on a free port. */
  private async serveModels({ text }: Recipe): Promise<void> {
    expect(text).toMatch(/^npm run model-server -- --port 8080\b/);
    const command = text.replace("npm run model-server -- --port 8080", `exec ${MODEL_SERVER} --port 0`);
    const child = this.spawn(command, { cwd: "." });
    const { url } = JSON.parse(await this.firstLine(child)) as { url: string };
    if (child.pid === undefined) throw new Error("the model server has no process");
    this.servers.push({ process: child, pid: child.pid });
    this.models = url;
  }

  /** What a server says first. Throws where it ends before. */
  private async firstLine(child: ChildProcess): Promise<string> {
    let log = "";
    child.stderr?.on("data", (data: Buffer) => (log += data.toString()));
    if (child.stdout === null) throw new Error("the command has no standard output");
    const ended = once(child, "close").then(([code]) => {
      throw new Error(`the command ended with exit code ${String(code)} before it served: ${log}`);
    });
    const [line] = (await Promise.race([once(createInterface(child.stdout), "line"), ended])) as [string];
    ended.catch(() => undefined);
    return line;
  }

  private spawn(text: string, { cwd = this.folder, env = {} }: SpawnOptions = {}): ChildProcess {
    const command = text.replaceAll(WRITTEN_ADDRESS, this.address).replaceAll(WRITTEN_MODELS, this.models);
    return spawn("bash", ["-e", "-o", "pipefail", "-c", command], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: PATH_WITH_TOOLS, ...env },
    });
  }
}

interface SpawnOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

const MODEL_SERVER = "node test/model_server/run.mjs";
const BUNDLE = resolve("dist", "skynet-scorer.js");
const PATH_WITH_TOOLS = [resolve(".tools", "bin"), process.env["PATH"] ?? ""].join(delimiter);

/** A pattern for a text whose `…` stand for anything within a line. */
function beginning(text: string): RegExp {
  const pieces = text.trim().split("…");
  return new RegExp(`^${pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}`);
}
