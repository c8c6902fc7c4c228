import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { dirname, join } from "node:path";

/** Memory that only this process uses, in bytes; `undefined` where the system does not tell. */
export function privateBytes(pid: number): number | undefined {
  return parsePrivateBytes(read(`/proc/${pid}/smaps_rollup`));
}

/** Memory that new processes may take before the system or a container's limit is reached, in bytes. */
export function availableBytes(): number {
  const system = parseAvailable(read("/proc/meminfo")) ?? freemem();
  return Math.max(0, Math.min(system, ...limits(read("/proc/self/cgroup"))));
}

export function parsePrivateBytes(smapsRollup: string): number | undefined {
  const sizes = [...smapsRollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm)].map(
    ([, size]) => Number(size) * 1024,
  );
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

export function parseAvailable(meminfo: string): number | undefined {
  const size = /^MemAvailable: +(\d+) kB$/m.exec(meminfo)?.[1];
  return size === undefined ? undefined : Number(size) * 1024;
}

/** What is left under each memory limit that the process's control groups set, those above it included. */
export function limits(cgroups: string, root = "/sys/fs/cgroup"): number[] {
  return cgroups.split("\n").flatMap((line) => {
    const [, id, controllers, path = "/"] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (id === "0") return upwards(root, path).map(leftInV2);
    if (controllers?.split(",").includes("memory") === true) return upwards(join(root, "memory"), path).map(leftInV1);
    return [];
  });
}

/** A group and those above it. In a container the path may be one of the host's, and only the root is to be seen. */
function upwards(root: string, path: string): string[] {
  const folders = [root];
  for (let at = path; at !== "/" && at !== "."; at = dirname(at)) folders.push(join(root, at));
  return folders;
}

function leftInV2(folder: string): number {
  return left(folder, "memory.max", "memory.current", "inactive_file");
}

function leftInV1(folder: string): number {
  return left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
}

/** `Infinity` without a limit. What the group holds of files that nobody uses is given back under pressure, so it is free. */
function left(folder: string, limitFile: string, usageFile: string, reclaimable: string): number {
  const limit = Number.parseFloat(read(join(folder, limitFile)));
  const usage = Number.parseFloat(read(join(folder, usageFile)));
  if (!Number.isFinite(limit) || !Number.isFinite(usage)) return Infinity;
  const cached = new RegExp(`^${reclaimable} (\\d+)$`, "m").exec(read(join(folder, "memory.stat")))?.[1] ?? "0";
  return limit - usage + Number(cached);
}

/** Empty where there is no such file. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
