import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

import { CommandError } from "../../../src/cli/exit.js";
import { ResultsFile } from "../../../src/cli/score/results_file.js";
import { CaseErrorCode } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { failed, scored } from "./results.js";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skynet-results-"));
  path = join(folder, "results.jsonl");
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function lines(): unknown[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
}

it("has each result in protobuf JSON with the proto's names, zeros written out", async () => {
  const file = new ResultsFile(path);
  await file.add([
    scored(0, 0, { feedback: "f", scores: { a: 0 }, metricMs: 0 }),
    failed(1, CaseErrorCode.METRIC_TIMEOUT, "m"),
  ]);
  await file.close();
  expect(lines()).toEqual([
    {
      id: "",
      index: 0,
      score: { value: 0, feedback: "f", scores: { a: 0 }, side_info_json: "" },
      timing: { queued_ms: 0, metric_ms: 0 },
    },
    {
      id: "",
      index: 1,
      error: { code: "CASE_ERROR_CODE_METRIC_TIMEOUT", message: "m" },
      timing: { queued_ms: 0, metric_ms: 0 },
    },
  ]);
});

it("has the results in the order of their cases as soon as those before them came", async () => {
  const file = new ResultsFile(path);
  await file.add([scored(2, 0.2), scored(1, 0.1)]);
  expect(file.written).toBe(0);
  await file.add([scored(0, 0)]);
  expect(file.written).toBe(3);
  await file.close();
  expect(lines().map((line) => (line as { index: number }).index)).toEqual([0, 1, 2]);
});

it("has what came when it is closed early, in order, without those that are missing", async () => {
  const file = new ResultsFile(path);
  await file.add([scored(12, 0), scored(3, 0), scored(0, 0)]);
  await file.close();
  expect(file.written).toBe(3);
  expect(lines().map((line) => (line as { index: number }).index)).toEqual([0, 3, 12]);
});

it("takes the place of a file that was there", async () => {
  writeFileSync(path, "old\n".repeat(100));
  const file = new ResultsFile(path);
  await file.add([scored(0, 1)]);
  await file.close();
  expect(lines()).toHaveLength(1);
});

it("is left as it was until there is a first line for it", async () => {
  writeFileSync(path, "old\n");
  const file = new ResultsFile(path);
  await file.add([]);
  await file.close();
  expect(readFileSync(path, "utf8")).toBe("old\n");
  await new ResultsFile(join(folder, "other")).close();
  expect(existsSync(join(folder, "other"))).toBe(false);
});

it("tells of a file that cannot be opened", async () => {
  const file = new ResultsFile(join(folder, "no", "where"));
  await expect(file.add([scored(0, 1)])).rejects.toThrow(/^--output .*where: writing failed: .*ENOENT/);
});

it("tells of a disk that is full", async () => {
  const file = new ResultsFile("/dev/full");
  const outcome = (async () => {
    await file.add([scored(0, 1)]);
    await file.close();
  })();
  await expect(outcome).rejects.toThrow(CommandError);
  await expect(outcome).rejects.toThrow(/^--output \/dev\/full: writing failed: .*ENOSPC/);
});

it("takes any number of results that are slower to write than they come", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on("warning", note);
  const file = new ResultsFile(path);
  const feedback = "x".repeat(100_000);
  for (let index = 0; index < 30; index++) await file.add([scored(index, 1, { feedback })]);
  await file.close();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  expect(warnings).toEqual([]);
  expect(lines()).toHaveLength(30);
});
