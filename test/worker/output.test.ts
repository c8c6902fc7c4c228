import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LineSplitter, MAX_LINE_BYTES, ProcessOutput } from "../../src/worker/output.js";
import { openDescriptors, until } from "./real_pool.js";

describe("lines", () => {
  function split(...pieces: (string | Buffer)[]): string[] {
    const lines: string[] = [];
    const splitter = new LineSplitter((line) => lines.push(line));
    for (const piece of pieces) splitter.push(Buffer.from(piece));
    splitter.end();
    return lines;
  }

  test("end at 0x0A alone, wherever the pieces are cut", () => {
    expect(split("one\ntw", "o\n\nth", "ree")).toEqual(["one", "two", "", "three"]);
    expect(split("a\u2028b\u0085c\vd\r\n")).toEqual(["a\u2028b\u0085c\vd"]);
    expect(split("")).toEqual([]);
    expect(split("é".repeat(3), Buffer.of(0xc3), Buffer.of(0xa9, 0x0a))).toEqual(["éééé"]);
  });

  test("bytes that are not UTF-8 become U+FFFD", () => {
    expect(split(Buffer.of(0x61, 0xff, 0x62, 0x0a))).toEqual(["a\ufffdb"]);
  });

  test("without an end are told in pieces", () => {
    const lines = split("x".repeat(2.5 * MAX_LINE_BYTES), "y\n");
    expect(lines.map((line) => line.length)).toEqual([MAX_LINE_BYTES, MAX_LINE_BYTES, MAX_LINE_BYTES / 2 + 1]);
    expect(split("x".repeat(MAX_LINE_BYTES) + "\nz\n").join("")).toBe(`${"x".repeat(MAX_LINE_BYTES)}z`);
  });
});

describe("a FIFO", () => {
  let folder: string;
  let path: string;
  let lines: string[];
  let descriptors: number | undefined;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "skynet-test-"));
    path = join(folder, "w1.out");
    execFileSync("mkfifo", [path]);
    lines = [];
    descriptors = openDescriptors();
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  function write(text: string): void {
    const fd = openSync(path, "w");
    writeSync(fd, text);
    closeSync(fd);
  }

  test("is read from one writer to the next", async () => {
    const output = new ProcessOutput(path, (line) => lines.push(line));
    write("one\n");
    await until(() => lines.length === 1, "the first line");
    write("two\n");
    await until(() => lines.length === 2, "the second line");
    expect(lines).toEqual(["one", "two"]);
    output.end();
  });

  test("is emptied at the end, its last line without an end included, and closed", async () => {
    const output = new ProcessOutput(path, (line) => lines.push(line));
    write("one\nlast words");
    output.end();
    output.end();
    expect(lines).toEqual(["one", "last words"]);
    await until(() => openDescriptors() === descriptors, "its descriptor to be closed");
    expect(lines).toEqual(["one", "last words"]);
  });
});
