import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test as base } from "vitest";

import { Sidecar, type SidecarOptions } from "./sidecar.js";

const METRICS = fileURLToPath(new URL("../fixtures/metrics", import.meta.url));

/** The path of a metric in test/fixtures/metrics. */
export function fixture(name: string): string {
  return join(METRICS, name);
}

/** A folder for one test's own files. */
export class Workspace {
  readonly path = mkdtempSync(join(tmpdir(), "skynet-e2e-files-"));

  /** Writes a file and returns its path. */
  write(name: string, content: string): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  /** Empty where there is no such file. */
  read(name: string): string {
    try {
      return readFileSync(join(this.path, name), "utf8");
    } catch {
      return "";
    }
  }

  exists(name: string): boolean {
    return existsSync(join(this.path, name));
  }

  lines(name: string): string[] {
    return this.read(name)
      .split("\n")
      .filter((line) => line !== "");
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

interface Scenario {
  /** Starts a sidecar for this test; it is stopped after it, and must then have left nothing. */
  readonly start: (metric: string | SidecarOptions) => Promise<Sidecar>;
  readonly workspace: Workspace;
}

/** A test with real sidecars: `start` takes the name of a fixture, or all options. */
export const test = base.extend<Scenario>({
  workspace: async ({}, use) => {
    const workspace = new Workspace();
    await use(workspace);
    workspace.remove();
  },
  start: async ({}, use) => {
    const started: Sidecar[] = [];
    await use(async (metric) => {
      const sidecar = await Sidecar.start(typeof metric === "string" ? { metric: fixture(metric) } : metric);
      started.push(sidecar);
      return sidecar;
    });
    for (const sidecar of started) await sidecar.stop();
  },
});
