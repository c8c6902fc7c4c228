import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { failure, read, seen } from "./case_files.js";

describe("cells", () => {
  it("are text as they stand", async () => {
    const cases = await seen("a.csv", "text,output,label\n007,NA,\n true ,1.0,null\n", { expected: ["label"] });
    expect(cases).toEqual([
      { input: '{"text":"007"}', output: '"NA"', expected: '{"label":""}' },
      { input: '{"text":" true "}', output: '"1.0"', expected: '{"label":"null"}' },
    ]);
  });

  it("may hold commas, quotes and line breaks in double quotes", async () => {
    const cases = await seen("a.csv", 'text,output\r\n"a, ""b""\r\nc","{""k"": 1}"\r\n');
    expect(cases).toEqual([{ input: JSON.stringify({ text: 'a, "b"\r\nc' }), output: JSON.stringify('{"k": 1}') }]);
  });

  it("come back as they were written, whatever they hold and however the file is cut", async () => {
    const cell = fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r\n", "é", "😀", "\u2028", " ", "\uFEFF") });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 12 }), async (rows) => {
        const quoted = rows.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(","));
        const { lines } = await read("p.csv", ["text,output", ...quoted].join("\n"));
        const cases = await seen("p.csv", ["text,output", ...quoted].join("\n"));
        expect(
          cases.map(({ input, output }) => [JSON.parse(input ?? ""), JSON.parse(output ?? "")] as unknown),
        ).toEqual(rows.map(([text, output]) => [{ text }, output]));
        let line = 2;
        const begins = rows.map((row) => {
          const begin = line;
          line += 1 + row.join("").split("\n").length - 1;
          return begin;
        });
        expect(lines).toEqual(begins);
      }),
      { numRuns: 60 },
    );
  });
});

describe("the file", () => {
  it("may begin with one byte order mark, which is dropped", async () => {
    expect(await seen("a.csv", "\uFEFFtext,output\nx,y\n")).toEqual([{ input: '{"text":"x"}', output: '"y"' }]);
    expect(await failure("a.csv", "\uFEFF\uFEFFoutput,text\nx,y\n")).toContain('did you mean "\uFEFFoutput"?');
  });

  it("may mix line ends, end without one, and hold blank lines", async () => {
    const { lines } = await read("a.csv", "text,output\r\n1,a\n\n2,b\r\n\r\n3,c");
    expect(lines).toEqual([2, 4, 6]);
  });

  it("may have columns with names that objects already have", async () => {
    const header = "__proto__,constructor,toString,input,expected,id,output";
    const cases = await seen("a.csv", `${header}\n1,2,3,4,5,6,7\n`, { expected: ["__proto__", "constructor"] });
    expect(cases).toEqual([
      {
        input: '{"toString":"3","input":"4","expected":"5","id":"6"}',
        output: '"7"',
        expected: '{"__proto__":"1","constructor":"2"}',
      },
    ]);
  });

  it("keeps the lines of records after quoted line breaks of both kinds", async () => {
    expect(await failure("a.csv", 'text,output\r\n"1\r\n2\n3",a\r\nx\r\n')).toMatch(/^a\.csv:5: the record has 1 cell/);
  });
});

it("reads files of many pieces, and tells lines in the last", async () => {
  const record = `${"x".repeat(1000)},"a\r\nb"\r\n`;
  const content = `text,output\n${record.repeat(3000)}`;
  const { lines } = await read("big.csv", content);
  expect([lines.length, lines.at(-1)]).toEqual([3000, 6000]);
  expect(await failure("big.csv", `${content}x\n`)).toMatch(/^big\.csv:6002: the record has 1 cell/);
});

describe("errors", () => {
  it.each([
    ["a column without a name", "text,,output\n", "a.csv:1: column 2 of 3 has no name; name it in the first line"],
    [
      "two columns of one name",
      "text,output,text\n",
      'a.csv:1: columns 1 and 3 are both called "text"; give each a name of its own',
    ],
    [
      "a record with too few cells",
      "text,output\n1,2\n3\n",
      "a.csv:3: the record has 1 cell, but the header names 2 columns (text, output)",
    ],
    [
      "a list that is not quoted",
      "text,output\nx,[1,2]\n",
      'a.csv:2: the record has 3 cells, but the header names 2 columns (text, output); put a cell that holds a comma, a double quote or a line break in double quotes, and double each quote inside it, as in "{""a"": 1}"',
    ],
    [
      "an object that is not quoted",
      'text,output\nx,y\nx,{"k": 1}\n',
      'a.csv:3: column "output": a double quote stands within a cell that is not quoted; put a cell that holds a comma, a double quote or a line break in double quotes, and double each quote inside it, as in "{""a"": 1}"',
    ],
    [
      "text after a closing quote",
      'text,output\n"x"y,z\n',
      'a.csv:2: column "text": text follows the double quote that closes the cell; put a cell that holds a comma, a double quote or a line break in double quotes, and double each quote inside it, as in "{""a"": 1}"',
    ],
    [
      "a quote that is not closed",
      'text,output\n1,2\n3,"4\n5,6\n',
      'a.csv:3: column "output": the cell opens with a double quote that is never closed; put a cell that holds a comma, a double quote or a line break in double quotes, and double each quote inside it, as in "{""a"": 1}"',
    ],
    ["nothing at all", "", "a.csv holds no case"],
    ["a header alone", "text,output\n", "a.csv holds no case"],
    ["a blank header", "\nx\n", "a.csv:1: the first line is blank; it must name the columns"],
  ])("tell of %s", async (_what, content, message) => {
    expect(await failure("a.csv", content)).toBe(message);
  });

  it("tell of bytes that are not UTF-8, with their line", async () => {
    const content = Buffer.concat([Buffer.from("text,output\né,y\nx"), Buffer.from([0xe9]), Buffer.from(",y\n")]);
    expect(await failure("a.csv", content)).toBe("a.csv:3: the line is not UTF-8; save the file as UTF-8");
  });

  it("tell of a character that the end of the file cuts", async () => {
    const content = Buffer.concat([Buffer.from("text,output\nx,"), Buffer.from([0xe2, 0x82])]);
    expect(await failure("a.csv", content)).toBe("a.csv:2: the line is not UTF-8; save the file as UTF-8");
  });
});
