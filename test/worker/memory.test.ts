import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { totalmem, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { availableBytes, limits, parseAvailable, parsePrivateBytes, privateBytes } from "../../src/worker/memory.js";

test("private memory is clean and dirty together", () => {
  const rollup =
    "Rss: 100 kB\nShared_Dirty:  7 kB\nPrivate_Clean:       52 kB\nPrivate_Dirty:      108 kB\nSwap: 3 kB\n";
  expect(parsePrivateBytes(rollup)).toBe(160 * 1024);
  expect(parsePrivateBytes("")).toBeUndefined();
});

test("available memory is what the kernel says", () => {
  expect(parseAvailable("MemTotal:  100 kB\nMemFree: 5 kB\nMemAvailable:     60 kB\n")).toBe(60 * 1024);
  expect(parseAvailable("MemTotal:  100 kB\n")).toBeUndefined();
});

test.runIf(process.platform === "linux")("of this process and this machine", () => {
  expect(privateBytes(process.pid)).toBeGreaterThan(1_000_000);
  expect(privateBytes(2 ** 30)).toBeUndefined();
  expect(availableBytes()).toBeGreaterThan(0);
  expect(availableBytes()).toBeLessThanOrEqual(totalmem());
});

describe("control groups", () => {
  let root: string;

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "skynet-test-"));
  });

  afterEach(() => {
    rmSync(root, { recursive: true });
  });

  function group(path: string, files: Record<string, string>): void {
    mkdirSync(join(root, path), { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(root, path, name), content);
  }

  test("version 2: each group above counts, files that nobody uses are free", () => {
    group("a", { "memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 100\ninactive_file 50\n" });
    group("a/b", { "memory.max": "max\n", "memory.current": "10\n" });
    expect(limits("0::/a/b\n", root).filter(Number.isFinite)).toEqual([650]);
  });

  test("version 1: the memory controller's group", () => {
    const stat = "inactive_file 1\ntotal_inactive_file 30\n";
    group("memory/box", { "memory.limit_in_bytes": "2000\n", "memory.usage_in_bytes": "500\n", "memory.stat": stat });
    expect(limits("5:cpu:/x\n4:memory:/box\n", root).filter(Number.isFinite)).toEqual([1530]);
  });

  test("in a container, where only the root is to be seen", () => {
    group("", { "memory.max": "900\n", "memory.current": "100\n" });
    expect(limits("0::/docker/abc\n", root).filter(Number.isFinite)).toEqual([800]);
  });
});
