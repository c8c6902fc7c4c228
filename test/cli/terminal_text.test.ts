import { expect, it } from "vitest";

import { cutMiddle, cutToWidth, oneLine, severalLines } from "../../src/cli/terminal_text.js";

it("makes one harmless line of anything", () => {
  expect(oneLine("a\r\n\tb\u2028c \u001B[31mred\u001B[0m\u0007 \u202Eevil\u0000 👩‍💻 ")).toBe("a b c red evil 👩‍💻");
});

it("keeps line breaks where they belong, and nothing else that steers a terminal", () => {
  expect(severalLines("a\n\tb\u001B[2J\r\nc\u0008")).toEqual(["a", "    b", "c"]);
});

it.each([
  ["short", 10, "short"],
  ["exactly", 7, "exactly"],
  ["too long", 7, "too lo…"],
  ["日本語テキスト", 8, "日本語…"],
  ["日本語", 6, "日本語"],
  ["é👩‍💻👩‍💻", 4, "é👩‍💻…"],
  ["", 0, ""],
])("cuts %j to %i columns", (text, width, cut) => {
  expect(cutToWidth(text, width)).toBe(cut);
});

it.each([
  ["short", 5, "short"],
  ["a long message (m.py, line 2)", 21, "a long mes…y, line 2)"],
  ["日本日本日本日本", 9, "日本…日本"],
  ["abcdef", 2, "a…"],
])("cuts the middle out of %s to fit %i columns", (text, width, cut) => {
  expect(cutMiddle(text, width)).toBe(cut);
});
