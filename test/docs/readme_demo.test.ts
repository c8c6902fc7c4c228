import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

import { runCommand } from "../e2e/command.js";

it("the README shows what the demo prints", async () => {
  const script = new URL("../../scripts/demo_arguments.mjs", import.meta.url).href;
  const { demoArguments } = (await import(script)) as { readonly demoArguments: readonly string[] };
  const shown = /^The demo ends with:\n\n```text\n(.*?)^```$/ms.exec(readFileSync("README.md", "utf8"))?.[1] ?? "";
  const { code, stdout } = await runCommand(demoArguments);
  expect(code).toBe(0);
  expect(withoutTimes(stdout.trim())).toMatch(patternOf(withoutTimes(shown.trim())));
});

/** Times differ from run to run. */
function withoutTimes(text: string): string {
  return text.replace(/[\d.,]+(?= (?:ms|s|cases\/s)\b)/g, "#");
}

/** A pattern for a text in which a line `…` stands for any lines. */
function patternOf(text: string): RegExp {
  const pieces = text.split(/\n…\n/).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${pieces.join("\\n(?:.*\\n)*")}$`);
}
