import { describe, expect, it } from "vitest";

import { readCases } from "../../../src/cli/cases/read_cases.js";
import { decode, failure, read, seen } from "./case_files.js";

describe("the format", () => {
  it.each([
    ["CSV", "a,output\n1,2\n"],
    ["CSV that begins with a byte order mark", "\uFEFFa,output\n1,2\n"],
    ["JSON Lines", '{"a":"1","output":"2"}\n'],
    ["JSON Lines with a field called cases", '{"a":"1","output":"2","cases":3}\n'],
    ["a JSON array", '[{"a":"1","output":"2"}]'],
    ["a JSON object on one line", '{"cases":[{"a":"1","output":"2"}]}'],
    ["a JSON object over several lines", '{\n"cases":[\n{"a":"1","output":"2"}]}'],
  ])("is recognised without an ending: %s", async (_what, content) => {
    expect(await seen("cases", content, { input: ["a"] })).toEqual([{ input: '{"a":"1"}', output: '"2"' }]);
  });

  it("is what the option says, whatever the ending", async () => {
    expect(await seen("a.csv", '{"a":1,"output":2}', {}, { format: "jsonl" })).toEqual([
      { input: '{"a":1}', output: "2" },
    ]);
  });

  it.each(["a.JSONL", "a.ndjson"])("is JSON Lines for %s", async (name) => {
    expect(await failure(name, "[]")).toContain("expected an object for each case");
  });
});

describe("requests", () => {
  it("hold at most so many cases", async () => {
    const cases = await read("a.csv", `output\n${"x\n".repeat(10)}`, {}, { batchSize: 4 });
    expect(cases.requests.map((request) => decode({ ...cases, requests: [request] }).length)).toEqual([4, 4, 2]);
  });

  it("hold few large cases", async () => {
    const row = JSON.stringify({ output: "x".repeat(600_000) });
    const { requests } = await read("a.jsonl", `${row}\n${row}\n${row}\n`);
    expect(requests).toHaveLength(3);
  });

  it("are never over the limit; a case that is gets an error", async () => {
    const row = JSON.stringify({ output: "x".repeat(400) });
    const { requests } = await read("a.jsonl", `${row}\n${row}\n${row}\n`, {}, { maxMessageBytes: 1024 });
    expect(Math.max(...requests.map(({ length }) => length))).toBeLessThanOrEqual(1024);
    const big = JSON.stringify({ output: "x".repeat(2000) });
    expect(await failure("a.jsonl", `${row}\n${big}\n`, {}, { maxMessageBytes: 1024 })).toMatch(
      /^a\.jsonl:2: this case takes \d+ bytes, and one message may have 1024; raise --max-message-bytes$/,
    );
  });
});

describe("a file that cannot be read", () => {
  const columns = { input: undefined, expected: [], prediction: "output", id: undefined };
  it.each([
    ["/nowhere/cases.csv", "cannot read the cases from /nowhere/cases.csv: there is no such file"],
    ["/", "cannot read the cases from /: it is a folder"],
  ])("%s is told", async (file, message) => {
    const options = { file, format: "auto", columns, batchSize: 1, maxMessageBytes: 1024 } as const;
    await expect(readCases(options, new AbortController().signal)).rejects.toThrow(message);
  });
});
