import { Command, CommanderError, Option } from "commander";

import { EXIT, UsageError } from "./exit.js";
import { CHECK_HELP, EXIT_HELP, PROGRAM_HELP, SCORE_HELP, SERVE_HELP } from "./help.js";
import { helpWidth, wrapHelp } from "./help_width.js";
import { OPTION_SPECS, type OptionName, type OptionSpec } from "./option_specs.js";

/** What the command line asked for. */
export interface Invocation {
  readonly command: "serve" | "check" | "score";
  /** Every option that was given, with its texts in order. */
  readonly given: ReadonlyMap<OptionName, readonly string[]>;
}

/** Groups of options as `--help` shows them. */
export type OptionGroups = Readonly<Record<string, readonly OptionName[]>>;

/** The options of each command. */
export type CommandOptions = Readonly<Record<Invocation["command"], OptionGroups>>;

/**
 * Reads arguments. Returns an exit code where there is nothing more to do (`--help`, `--version`). Throws `UsageError`
 * for what no command understands.
 *
 * @param columns of the terminal that help is written to; `undefined`: there is none.
 */
export function parseArguments(
  argv: readonly string[],
  commands: CommandOptions,
  version: string,
  write: (text: string) => void,
  columns: number | undefined,
): Invocation | number {
  let invocation: Invocation | undefined;
  const width = helpWidth(columns);
  const program = new Command("skynet-scorer")
    .description("Scores cases with a metric.py in persistent Python interpreters.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", wrapHelp(PROGRAM_HELP + EXIT_HELP, width));
  const descriptions = {
    serve: ["Serve a metric over gRPC, Connect and HTTP on localhost.", SERVE_HELP],
    check: ["Check that a metric keeps its contract.", CHECK_HELP],
    score: ["Score every case of a file and sum up.", SCORE_HELP],
  } as const;
  for (const name of ["serve", "check", "score"] as const) {
    const [description, help] = descriptions[name];
    const command = program
      .command(name)
      .description(description)
      .addHelpText("after", wrapHelp(help + EXIT_HELP, width));
    const options = addOptions(command, commands[name]);
    command.action(() => {
      invocation = { command: name, given: givenOptions(command, options) };
    });
  }
  for (const command of [program, ...program.commands]) {
    command
      .exitOverride()
      .configureOutput({ writeOut: write, writeErr: () => undefined })
      .configureHelp({ helpWidth: width, minWidthToWrap: 20 })
      .allowExcessArguments(false);
  }
  try {
    program.parse(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.ok;
    if (error.code === "commander.help")
      throw new UsageError("a command is needed: serve, check or score; see skynet-scorer --help");
    throw new UsageError(`${asOneClause(error.message)}; see skynet-scorer --help`);
  }
  if (invocation === undefined)
    throw new UsageError("a command is needed: serve, check or score; see skynet-scorer --help");
  return invocation;
}

/** commander's message, ready for more to follow it. */
function asOneClause(message: string): string {
  return message
    .replace(/^error: /, "")
    .replaceAll("\n", " ")
    .replace(/\. Expected /, ": expected ")
    .replace(/\.$/, "");
}

function addOptions(command: Command, groups: OptionGroups): ReadonlyMap<OptionName, Option> {
  const options = new Map<OptionName, Option>();
  for (const [group, names] of Object.entries(groups)) {
    for (const name of names) {
      const spec: OptionSpec = OPTION_SPECS[name];
      const { fallback } = spec;
      const isPlain = fallback === undefined || fallback === "false";
      const option = new Option(spec.flags, isPlain ? spec.help : `${spec.help} (default: ${fallback})`).helpGroup(
        group,
      );
      if (spec.flags.includes("<"))
        option.argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]);
      command.addOption(spec.isHidden === true ? option.hideHelp() : option);
      options.set(name, option);
    }
  }
  return options;
}

function givenOptions(
  command: Command,
  options: ReadonlyMap<OptionName, Option>,
): ReadonlyMap<OptionName, readonly string[]> {
  const values: Readonly<Record<string, unknown>> = command.opts();
  const given = new Map<OptionName, readonly string[]>();
  for (const [name, option] of options) {
    const value = values[option.attributeName()];
    if (Array.isArray(value)) given.set(name, value.map(String));
    else if (value === true) given.set(name, ["true"]);
  }
  return given;
}
