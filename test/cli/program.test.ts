import { describe, expect, it } from "vitest";

import { UsageError } from "../../src/cli/exit.js";
import { type CommandOptions, parseArguments } from "../../src/cli/program.js";

const COMMANDS: CommandOptions = {
  serve: { "Serving:": ["metric", "listen", "watch"] },
  check: { "Cases:": ["metric", "cases"] },
  score: { "Cases:": ["metric", "cases", "maxWorkers"] },
};

function parse(...argv: string[]): { outcome: ReturnType<typeof parseArguments>; text: string } {
  return parseAt(undefined, argv);
}

function parseAt(
  columns: number | undefined,
  argv: readonly string[],
): { outcome: ReturnType<typeof parseArguments>; text: string } {
  let text = "";
  const outcome = parseArguments(argv, COMMANDS, "1.2.3", (part) => (text += part), columns);
  return { outcome, text };
}

it("gives the command and what was given, repeated options in order", () => {
  const { outcome } = parse("serve", "--listen", "a:1", "--metric=-m.py", "--listen", "b:2", "--watch");
  expect(outcome).toEqual({
    command: "serve",
    given: new Map([
      ["metric", ["-m.py"]],
      ["listen", ["a:1", "b:2"]],
      ["watch", ["true"]],
    ]),
  });
});

describe("help", () => {
  it("shows each command's options in their groups, with defaults, examples and exit codes", () => {
    const { outcome, text } = parse("score", "--help");
    expect(outcome).toBe(0);
    for (const part of [
      "Cases:\n  --metric <file>",
      "(default: 64)",
      "Examples:\n  $ skynet-scorer score",
      "Exit codes:",
    ]) {
      expect(text).toContain(part);
    }
  });

  it("shows the commands, and how variables are called", () => {
    const { text } = parse("--help");
    for (const part of ["serve", "check", "score", "SKYNET_SCORER_METRIC_TIMEOUT", "def score("])
      expect(text).toContain(part);
  });

  it.each([
    [undefined, 80],
    [60, 60],
    [80, 80],
    [100, 100],
    [140, 100],
  ])("keeps to the width of a terminal of %s columns, and breaks between words", (columns, width) => {
    const words = (text: string): string[] => text.split(/[\s\\]+/);
    for (const argv of [["--help"], ["serve", "--help"], ["check", "--help"], ["score", "--help"]]) {
      const { text } = parseAt(columns, argv);
      for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
      expect(words(text)).toEqual(words(parseAt(100, argv).text));
    }
  });

  it("is told apart from the version", () => {
    expect(parse("--version")).toEqual({ outcome: 0, text: "1.2.3\n" });
  });
});

describe("what no command understands", () => {
  it.each([
    [[], "a command is needed: serve, check or score; see skynet-scorer --help"],
    [["scroe"], "unknown command 'scroe' (Did you mean score?); see skynet-scorer --help"],
    [["score", "--case", "x"], "unknown option '--case' (Did you mean --cases?); see skynet-scorer --help"],
    [["score", "--cases"], "option '--cases <file>' argument missing; see skynet-scorer --help"],
    [["check", "--listen", "a:1"], "unknown option '--listen'; see skynet-scorer --help"],
  ])("%j is refused", (argv, message) => {
    expect(() => parse(...argv)).toThrow(new UsageError(message));
  });

  it("a word too many is refused", () => {
    expect(() => parse("score", "cases.csv")).toThrow(
      new UsageError("too many arguments for 'score': expected 0 arguments but got 1; see skynet-scorer --help"),
    );
  });
});
