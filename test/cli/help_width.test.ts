import { expect, it } from "vitest";

import { wrapHelp } from "../../src/cli/help_width.js";

it("fills paragraphs, and keeps headings, commands and terms in their form", () => {
  const text = [
    "One paragraph that",
    "goes on.",
    "",
    "Signals:",
    "  SIGTERM, SIGINT  stop, once running cases have ended",
    "  $ command --option value --other value",
    "",
    "  def score(input, output, expected=None): stands as it is",
  ].join("\n");
  expect(wrapHelp(text, 32)).toBe(
    [
      "One paragraph that goes on.",
      "",
      "Signals:",
      "  SIGTERM, SIGINT  stop, once",
      "                   running cases",
      "                   have ended",
      "  $ command --option value \\",
      "      --other value",
      "",
      "  def score(input, output, expected=None): stands as it is",
    ].join("\n"),
  );
});
