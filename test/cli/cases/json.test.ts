import { describe, expect, it } from "vitest";

import { failure, read, seen } from "./case_files.js";

const ONE = '{"text": "x", "output": 1}';
const SEEN = { input: '{"text":"x"}', output: "1" };

describe("JSON Lines", () => {
  it("keeps every value's exact text", async () => {
    const line = '{"n": 9007199254740993, "f": 1.0, "big": 1e400, "nan": NaN, "output": [1.10, {"a" : null}]}';
    expect(await seen("a.jsonl", line)).toEqual([
      { input: '{"n":9007199254740993,"f":1.0,"big":1e400,"nan":NaN}', output: '[1.10, {"a" : null}]' },
    ]);
  });

  it("ends a line at a line feed alone", async () => {
    const text = "a\u2028b\u2029c\u0085d\u000Be";
    const line = JSON.stringify({ text, output: text }).replace("\\u000b", "\\u000b");
    const [only, ...others] = await seen("a.jsonl", `${line}\n`);
    expect(others).toEqual([]);
    expect(JSON.parse(only?.output ?? "")).toBe(text);
  });

  it("may have CRLF, blank lines, a byte order mark and no last line end", async () => {
    const { lines } = await read("a.jsonl", `\uFEFF${ONE}\r\n\r\n  \n${ONE}\n\n${ONE}`);
    expect(lines).toEqual([1, 4, 6]);
  });

  it("tells missing, empty and null apart", async () => {
    const content = '{"output":"","label":null}\n{"output":null,"label":""}\n{"other":1}\n';
    expect(await seen("a.jsonl", content, { expected: ["label"] })).toEqual([
      { input: "{}", output: '""', expected: '{"label":null}' },
      { input: "{}", output: "null", expected: '{"label":""}' },
      { input: '{"other":1}' },
    ]);
  });

  it.each([
    ["text that is not JSON", `${ONE}\n{"text": x}\n`, 'a.jsonl:2: character 10: expected a value, found "x"'],
    [
      "a line that is not an object",
      `${ONE}\n[1]\n`,
      "a.jsonl:2: character 1: expected an object for each case, whose keys are its columns",
    ],
    ["two values on a line", `${ONE} ${ONE}\n`, 'a.jsonl:1: character 28: expected nothing after the value, found "{"'],
    [
      "a column that stands twice",
      '{"output": 1, "output": 2}\n',
      'a.jsonl:1: character 25: the column "output" stands twice in this case',
    ],
    [
      "an object over several lines",
      '{"text": "x",\n"output": 1}\n',
      "a.jsonl:1: character 14: expected a key in double quotes, found the end of the text",
    ],
    ["nothing but blank lines", "\n \n", "a.jsonl holds no case"],
  ])("is refused with %s", async (_what, content, message) => {
    expect(await failure("a.jsonl", content)).toBe(message);
  });

  it("is refused with bytes that are not UTF-8", async () => {
    const content = Buffer.concat([Buffer.from(`${ONE}\n{"output": "`), Buffer.from([0xff]), Buffer.from('"}\n')]);
    expect(await failure("a.jsonl", content)).toBe("a.jsonl:2: the line is not UTF-8; save the file as UTF-8");
  });
});

describe("JSON", () => {
  it.each([
    ["an array", `[\n${ONE},\n${ONE}\n]`, [2, 3]],
    ["an object with cases", `{"name": "x", "cases": [${ONE},\n${ONE}], "more": []}`, [1, 2]],
  ])("is %s", async (_what, content, lines) => {
    expect((await read("a.json", content)).lines).toEqual(lines);
    expect(await seen("a.json", content)).toEqual([SEEN, SEEN]);
  });

  it.each([
    [
      "no list of cases",
      '{"rows": []}',
      'a.json:1: character 1: expected an array of objects, or an object whose "cases" is one',
    ],
    [
      "an element that is no object",
      `[${ONE},\n 1]`,
      "a.json:2: character 2: expected an object for each case, whose keys are its columns",
    ],
    ["an error on a later line", `[${ONE},\n  {"text": tru}]`, 'a.json:2: character 12: expected a value, found "t"'],
    ["JSON Lines", `${ONE}\n${ONE}\n`, 'a.json:2: character 1: expected nothing after the value, found "{"'],
    ["an empty list", "[]", "a.json holds no case"],
    ["nothing", "", "a.json holds no case"],
  ])("is refused with %s", async (_what, content, message) => {
    expect(await failure("a.json", content)).toBe(message);
  });
});
