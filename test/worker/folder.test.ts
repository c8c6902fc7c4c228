import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PrivateFolder } from "../../src/worker/folder.js";

test("is the sidecar's own, and gone with what is in it", () => {
  const folder = new PrivateFolder();
  expect(statSync(folder.path).mode & 0o777).toBe(0o700);
  for (const path of [folder.box(1), folder.output(1), folder.output(0), folder.box(2)]) writeFileSync(path, "");
  folder.forget(1);
  folder.forget(3);
  expect([folder.box(1), folder.output(1), folder.output(0), folder.box(2)].map(existsSync)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  folder.remove();
  folder.remove();
  expect(existsSync(folder.path)).toBe(false);
});

test("has paths short enough for sockets, wherever temporary files belong", () => {
  const base = mkdtempSync(join(tmpdir(), "skynet-test-"));
  const deep = join(base, "d".repeat(90));
  mkdirSync(deep);
  const folder = new PrivateFolder(deep);
  expect(folder.path).toMatch(/^\/tmp\/skynet-\w{6}$/);
  expect(Buffer.byteLength(folder.box(2 ** 32 - 1))).toBeLessThan(104);
  folder.remove();
  rmSync(base, { recursive: true });
});
