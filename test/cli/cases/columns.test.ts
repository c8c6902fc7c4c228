import { describe, expect, it } from "vitest";

import { failure, read, seen } from "./case_files.js";

describe("the input", () => {
  it("is by default what no other option names", async () => {
    const row = '{"id": 1, "q": "?", "label": "a", "output": "b", "more": {"x": 1}}';
    expect(await seen("a.jsonl", row, { expected: ["label"], id: "id" })).toEqual([
      { id: "1", input: '{"q":"?","more":{"x": 1}}', output: '"b"', expected: '{"label":"a"}' },
    ]);
  });

  it("has by default nothing of a column into which another name leads", async () => {
    const row = '{"q": "?", "model": {"answer": "b", "is_correct": true}, "gold": {"label": "a"}}';
    expect(await seen("a.jsonl", row, { prediction: "model.answer", expected: ["gold.label"] })).toEqual([
      { input: '{"q":"?"}', output: '"b"', expected: '{"gold.label":"a"}' },
    ]);
  });

  it("has the columns that are named, and no others, in the order named", async () => {
    const row = '{"a": 1, "b": {"c": [2, 3]}, "output": 4}';
    expect(await seen("a.jsonl", row, { input: ["b.c.1", "b.c", "a"] })).toEqual([
      { input: '{"b.c.1":3,"b.c":[2, 3],"a":1}', output: "4" },
    ]);
  });

  it("lacks the key where the case lacks the column", async () => {
    expect(await seen("a.jsonl", '{"a": 1, "output": 1}\n{"b": null, "output": 2}', { input: ["a", "b"] })).toEqual([
      { input: '{"a":1}', output: "1" },
      { input: '{"b":null}', output: "2" },
    ]);
  });
});

describe("a name with dots", () => {
  it("is a column of that name first, and a path after that", async () => {
    expect(await seen("a.jsonl", '{"m.a": 1, "m": {"a": 2}}\n{"m": {"a": 3}}', { prediction: "m.a" })).toEqual([
      { input: '{"m":{"a": 2}}', output: "1" },
      { input: "{}", output: "3" },
    ]);
  });

  it("begins with the longest column that has dots itself", async () => {
    const row = '{"gpt-4.1": {"answer": 1}, "gpt-4": {"1": {"answer": 2}}}';
    expect(await seen("a.jsonl", row, { prediction: "gpt-4.1.answer" })).toEqual([
      { input: '{"gpt-4":{"1": {"answer": 2}}}', output: "1" },
    ]);
  });

  it("leads nowhere below text, a number or null", async () => {
    const rows = '{"m": "x"}\n{"m": 1}\n{"m": null}\n{"m": {"a": 1}}';
    expect((await seen("a.jsonl", rows, { prediction: "m.a" })).map(({ output }) => output)).toEqual([
      undefined,
      undefined,
      undefined,
      "1",
    ]);
  });
});

describe("an unknown column", () => {
  it("is told with the option, the nearest name and the columns there are", async () => {
    expect(await failure("a.csv", "question,Label,output\n1,2,3\n", { expected: ["label"] })).toBe(
      '--output-columns label: a.csv has no such column (did you mean "Label"?); its columns are: question, Label, output',
    );
  });

  it("is told with the nearest path", async () => {
    const row = '{"q": 1, "model": {"solution": 2}}';
    expect(await failure("a.jsonl", row, { prediction: "model.solutoin" })).toBe(
      '--prediction-column model.solutoin: a.jsonl has no such column (did you mean "model.solution"?); its columns are: q, model',
    );
  });

  it("is told without a guess where nothing is near", async () => {
    expect(await failure("a.csv", "a,output\n1,2\n", { input: ["context"] })).toBe(
      "--input-columns context: a.csv has no such column; its columns are: a, output",
    );
  });
});

describe("a header in one piece", () => {
  it.each([
    ["a.csv", "question;output\n1;2\n", "; separate columns with commas"],
    ["a.csv", "question\toutput\n1\t2\n", "; separate columns with commas"],
    ["a.csv", "[1]\n[2]\n", "; the file is read as CSV (its name ends in .csv; --format says otherwise)"],
    ["a.csv", "question\n1\n", ""],
  ])("gets a hint where its format is another: %s %j", async (name, content, hint) => {
    const message = await failure(name, content);
    expect(message).toContain("--prediction-column output: a.csv has no such column");
    expect(message.endsWith(`its columns are: ${content.split("\n")[0] ?? ""}${hint}`)).toBe(true);
  });

  it("is told to be JSON where its quotes are no CSV", async () => {
    expect(await failure("a", '[{"output": 1}]\n', {}, { format: "csv" })).toBe(
      "a:1: this is no CSV; the file is read as CSV (--format csv)",
    );
  });

  it("gets one where its names are quoted", async () => {
    expect(await failure("a.csv", '"question";"output"\n')).toBe(
      "a.csv:1: column 1: text follows the double quote that closes the cell; separate columns with commas",
    );
  });

  it("is told with the option that has it read as JSON", async () => {
    const message = await failure("a.csv", "question,output\n1,2\n", {}, { format: "json" });
    expect(message).toMatch(/^a\.csv:1: character 1: .*; the file is read as JSON \(--format json\)$/);
    expect(await failure("a.jsonl", "question,output\n1,2\n")).toMatch(
      /; the file is read as JSON Lines \(its name ends in \.jsonl; --format says otherwise\)$/,
    );
    expect(await failure("a.jsonl", '{"output": 1\n')).not.toContain("read as");
  });
});

describe("a JSON array", () => {
  it("has cases that are told by their place in it", async () => {
    expect((await read("a.json", '[{"output": 1}, {"output": 2}]')).unit).toBe("case");
    expect((await read("a.jsonl", '{"output": 1}')).unit).toBe("line");
    expect(await failure("a.json", '[{"id": 1, "output": 1}, {"id": 1, "output": 2}]', { id: "id" })).toBe(
      'a.json:1: case 2: the id "1" is that of case 1 too; ids must differ',
    );
  });
});

describe("a row that lacks a column which others have", () => {
  const rows = '{"label": 1, "model": 1}\n{}\n{"model": 2}\n{"label": 3, "model": null}';

  it("is told with the line, the column and the option", async () => {
    const { gaps } = await read("a.jsonl", rows, { prediction: "model", expected: ["label"] });
    expect([0, 1, 2, 3].map((index) => gaps.whyNoOutput(index))).toEqual([
      undefined,
      'no "model" (--prediction-column)',
      undefined,
      undefined,
    ]);
    expect(gaps.predictionNotes().map(withoutFolder)).toEqual([
      'a.jsonl: line 2: no "model" (--prediction-column); what has no output cannot be scored',
    ]);
    expect(gaps.expectedNotes().map(withoutFolder)).toEqual([
      'a.jsonl: line 2 and 1 more case: no "label" (--output-columns); the metric gets no such expected value',
    ]);
  });

  it("gets its output from the artifact where there is one", async () => {
    const { gaps } = await read("a.jsonl", rows, { prediction: "model" }, { artifact: Buffer.from("1") });
    expect([gaps.whyNoOutput(1), gaps.predictionNotes(), gaps.expectedNotes()]).toEqual([undefined, [], []]);
  });
});

describe("ids", () => {
  it("are strings, or numbers as they are written", async () => {
    const rows = '{"id": "a\\u00e9", "output": 1}\n{"id": 9007199254740993, "output": 1}';
    expect((await seen("a.jsonl", rows, { id: "id" })).map(({ id }) => id)).toEqual(["aé", "9007199254740993"]);
  });

  it.each(['{"output": 1}', '{"id": "", "output": 1}', '{"id": null, "output": 1}', '{"id": [1], "output": 1}'])(
    "cannot come from %s",
    async (row) => {
      const message = await failure("a.jsonl", `{"id": "x", "output": 1}\n${row}`, { id: "id" });
      expect(message).toMatch(/^a\.jsonl:2: --id-column id: expected a string or a number, (found|this case has none)/);
    },
  );

  it("must differ", async () => {
    expect(await failure("a.csv", "id,output\na,1\nb,2\na,3\n", { id: "id" })).toBe(
      'a.csv:4: the id "a" is that of line 2 too; ids must differ',
    );
  });
});

function withoutFolder(text: string): string {
  return text.slice(text.lastIndexOf("/") + 1);
}
