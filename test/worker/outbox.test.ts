import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FileOutbox } from "../../src/worker/outbox.js";
import { payload, vectors } from "./vectors.js";

let folder: string;
let path: string;
let outbox: FileOutbox;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skynet-test-"));
  path = join(folder, "w1.box");
  writeFileSync(path, Buffer.alloc(64 * 1024));
  outbox = new FileOutbox(path);
});

afterEach(() => {
  outbox.close();
  rmSync(folder, { recursive: true });
});

interface Left {
  position?: number;
  rows?: Uint8Array;
  /** What the header says, where that is not the truth. */
  rowBytes?: number;
  beganNs?: bigint;
  chunk?: number;
}

/** Writes as a worker does. */
function leave({ position = 0xffffffff, rows = new Uint8Array(0), rowBytes, beganNs = 0n, chunk = 1 }: Left): void {
  const header = Buffer.alloc(20);
  header.writeUInt32LE(position, 0);
  header.writeUInt32LE(rowBytes ?? rows.length, 4);
  header.writeBigUInt64LE(beganNs, 8);
  header.writeUInt32LE(chunk, 16);
  const fd = openSync(path, "r+");
  writeSync(fd, header, 0, 20, 0);
  writeSync(fd, rows, 0, rows.length, 64);
  closeSync(fd);
}

const [vector] = vectors("rows").filter(({ rows }) => rows.length > 1);
const packed = payload(vector?.hex ?? "").subarray(33);

test("tells the case in hand, when it began, and the finished rows", () => {
  leave({ position: 3, rows: packed, beganNs: 123_456_789_012_345n, chunk: 77 });
  const contents = outbox.read();
  expect(contents).toMatchObject({ position: 3, beganNs: 123_456_789_012_345, chunk: 77 });
  expect(contents?.rows.map(({ position }) => position)).toEqual(vector?.rows.map(({ position }) => position));
});

test("tells nothing in hand between cases", () => {
  leave({ chunk: 2 });
  expect(outbox.read()).toEqual({ position: undefined, beganNs: 0, chunk: 2, rows: [] });
});

test("rows stay as they were read, whatever is read later", () => {
  leave({ rows: packed });
  const before = outbox.read()?.rows.map(({ text }) => Buffer.from(text).toString());
  const rows = outbox.read()?.rows;
  leave({ rows: Buffer.alloc(packed.length, 0x41) });
  outbox.read();
  expect(rows?.map(({ text }) => Buffer.from(text).toString())).toEqual(before);
});

test("what a metric has scribbled over is no row, however long it says that it is", () => {
  leave({ position: 1, rows: Buffer.alloc(100, 0xff) });
  expect(outbox.read()).toMatchObject({ position: 1, rows: [] });
  leave({ position: 1, rowBytes: 0xffffffff });
  expect(outbox.read()?.position).toBe(1);
});

test("recall writes the chunk's low byte and nothing else", () => {
  leave({ position: 5, chunk: 0x1234 });
  const before = readFileSync(path);
  outbox.recall(0x1234);
  const after = readFileSync(path);
  expect(after[20]).toBe(0x34);
  after[20] = before[20] ?? 0;
  expect(after.equals(before)).toBe(true);
});

test("a closed or truncated outbox tells nothing", () => {
  writeFileSync(path, "");
  expect(outbox.read()).toBeUndefined();
  outbox.close();
  outbox.close();
  expect(outbox.read()).toBeUndefined();
  outbox.recall(1);
});
