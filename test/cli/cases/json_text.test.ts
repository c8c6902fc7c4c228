import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { JsonTextError, expectEnd, readArray, readObject, readValue } from "../../../src/cli/cases/json_text.js";

/** Whether the text is one JSON value and nothing else. */
function accepts(text: string): boolean {
  const bytes = Buffer.from(text);
  try {
    expectEnd(bytes, readValue(bytes, 0)[1]);
    return true;
  } catch (error) {
    if (error instanceof JsonTextError) return false;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function members(text: string): [string, string][] {
  const bytes = Buffer.from(text);
  const found: [string, string][] = [];
  readObject(bytes, 0, (key, begin, end) => found.push([key, bytes.toString("utf8", begin, end)]));
  return found;
}

describe("what is JSON", () => {
  it("is what JSON.parse takes, for any value with any blanks", () => {
    fc.assert(
      fc.property(
        fc.json({ stringUnit: "binary", maxDepth: 4 }),
        fc.constantFrom("", " ", "\n", "\t\r\n"),
        (text, blanks) => {
          expect(accepts(blanks + text + blanks)).toBe(true);
        },
      ),
    );
  });

  it("is not what JSON.parse refuses, for text that was JSON before one change", () => {
    const change = fc.constantFrom(...Array.from('{}[],:"\\0123456789.eE+-truefalsn \n\u0001\u2028x'));
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.nat(), change, fc.boolean(), (text, place, put, replace) => {
        const at = place % (text.length + 1);
        const changed = text.slice(0, at) + put + text.slice(replace ? at + 1 : at);
        expect(accepts(changed)).toBe(parses(changed));
      }),
      { numRuns: 3000 },
    );
  });

  it("is not what JSON.parse refuses, for short texts of its own characters", () => {
    const text = fc.array(fc.constantFrom(...Array.from('{}[],:"\\u0019aA.eE+- \n'), "true", "null", "false"), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(text, (parts) => {
        expect(accepts(parts.join(""))).toBe(parses(parts.join("")));
      }),
      { numRuns: 5000 },
    );
  });

  it.each(["NaN", "Infinity", "-Infinity", "[NaN,-Infinity]"])("is also %s, as Python writes it", (text) => {
    expect(accepts(text)).toBe(true);
  });

  it.each(["-NaN", "nan", "+1", "Infinit", "-Inf", "0x1", "01", "1.", ".5", "1e", "--1"])("is not %s", (text) => {
    expect(accepts(text)).toBe(false);
  });

  it("may be nested a million deep", () => {
    const depth = 1_000_000;
    expect(accepts("[".repeat(depth) + "]".repeat(depth))).toBe(true);
    expect(accepts("[".repeat(depth) + "]".repeat(depth - 1))).toBe(false);
  });
});

describe("where values stand", () => {
  it("gives each member's exact text and its decoded key", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (object) => {
        // Two keys may become one: lone surrogates have no UTF-8.
        const text = Buffer.from(JSON.stringify(object)).toString("utf8");
        const parsed = JSON.parse(text) as Record<string, unknown>;
        expect(members(text).map(([key, value]) => [key, JSON.parse(value) as unknown])).toEqual(
          Object.entries(parsed).length === members(text).length ? inOrder(text, parsed) : expect.anything(),
        );
      }),
    );
  });

  it("keeps numbers as they are written", () => {
    const text = '{"a": 9007199254740993, "b": 1.0, "c": 1e400, "d": -0, "e": NaN, "f": [1.10 , 2]}';
    expect(members(text)).toEqual([
      ["a", "9007199254740993"],
      ["b", "1.0"],
      ["c", "1e400"],
      ["d", "-0"],
      ["e", "NaN"],
      ["f", "[1.10 , 2]"],
    ]);
  });

  it("takes keys that objects already have for plain keys", () => {
    expect(members('{"__proto__": 1, "constructor": 2, "toString": 3}')).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
      ["toString", "3"],
    ]);
  });

  it("decodes escapes in keys", () => {
    expect(members('{"\\u0061\\n\\"\\ud83d\\ude00": 1}')).toEqual([['a\n"😀', "1"]]);
  });

  it("gives each element of an array", () => {
    const bytes = Buffer.from('[ 1.0 ,"x", {"a":[]} ,[] ]');
    const found: string[] = [];
    readArray(bytes, 0, (begin, end) => found.push(bytes.toString("utf8", begin, end)));
    expect(found).toEqual(["1.0", '"x"', '{"a":[]}', "[]"]);
  });
});

describe("errors", () => {
  it.each([
    ['{"a": }', 6, 'expected a value, found "}"'],
    ['{"a" 1}', 5, 'expected ":", found "1"'],
    ["{'a': 1}", 1, 'expected a key in double quotes, found "\'"'],
    ['{"a": 1,}', 8, 'expected a key in double quotes, found "}"'],
    ["[1 2]", 3, 'expected "," or "]", found "2"'],
    ['["a\nb"]', 3, "a string holds the end of the line, which must be written as an escape"],
    ['["a', 1, "the string that begins here does not end"],
    ['["\\x"]', 2, 'expected one of "\\/bfnrtu after a backslash, found "x"'],
    ["[1", 2, 'expected "," or "]", found the end of the text'],
    ["1 1", 2, 'expected nothing after the value, found "1"'],
  ])("of %j say where and what", (text, offset, message) => {
    const bytes = Buffer.from(text);
    expect(() => {
      expectEnd(bytes, readValue(bytes, 0)[1]);
    }).toThrow(expect.objectContaining({ offset, message }) as Error);
  });
});

/** The members in the order of the text, which for keys that look like numbers is not that of the object. */
function inOrder(text: string, parsed: Record<string, unknown>): [string, unknown][] {
  return members(text).map(([key]) => [key, parsed[key]]);
}
