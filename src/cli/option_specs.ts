import { z } from "zod";

import { address, bytes, file, flag, names, one, seconds, text, whole } from "./option_values.js";

/** One option, wherever it comes from: an argument or a variable. */
export interface OptionSpec {
  /** As commander reads it. */
  readonly flags: string;
  readonly help: string;
  /** What a value must be, for the error: "expected …". */
  readonly expected: string;
  /** Used where neither an argument nor a variable gives one. */
  readonly fallback?: string;
  /** Gets every text that was given, in order; an option without a value gives "true". */
  readonly schema: z.ZodType<unknown, string[]>;
  readonly isRepeatable?: boolean;
  /** For this program's own use: `--help` does not show it. */
  readonly isHidden?: boolean;
}

/** Every option of every command, by the name that `SKYNET_SCORER_…` has too. */
export const OPTION_SPECS = {
  metric: {
    flags: "--metric <file>",
    help: "the metric: a Python file that defines score(input, output, expected=None)",
    expected: "a file that can be read",
    schema: one(file()),
  },
  listen: {
    flags: "--listen <address>",
    help: "where to listen: host:port (port 0 picks one) or unix:/path.sock; repeatable (default: port 50051 on both loopbacks)",
    expected: "host:port with a port from 0 to 65535, or unix:/path.sock of at most 103 bytes",
    schema: z
      .array(z.string())
      .transform((given) => given.flatMap((list) => list.split(",")))
      .pipe(z.array(address(0)).min(1)),
    isRepeatable: true,
  },
  connect: {
    flags: "--connect <address>",
    help: "use a sidecar that runs already instead of starting one: host:port or unix:/path.sock",
    expected: "host:port with a port from 1 to 65535, or unix:/path.sock of at most 103 bytes",
    schema: one(address(1)),
  },
  python: {
    flags: "--python <command>",
    help: "the interpreter that runs the metric, 3.9 or newer (default: the active virtual environment's, else python3)",
    expected: "a command or a path",
    schema: one(text()),
  },
  startMethod: {
    flags: "--start-method <method>",
    help: "how workers start: fork shares what the metric loaded, spawn loads it in each, auto forks where that is safe",
    expected: "one of auto, fork, spawn",
    fallback: "auto",
    schema: one(z.enum(["auto", "fork", "spawn"])),
  },
  workers: {
    flags: "--workers <n>",
    help: "fix the number of workers (default: as many as the metric's waiting needs)",
    expected: "a whole number from 1 to 1024",
    schema: one(whole(1, 1024)),
  },
  maxWorkers: {
    flags: "--max-workers <n>",
    help: "most workers at a time, where --workers does not fix their number",
    expected: "a whole number from 1 to 1024",
    fallback: "64",
    schema: one(whole(1, 1024)),
  },
  metricTimeout: {
    flags: "--metric-timeout <seconds>",
    help: "how long the metric may take for one case; at most 600",
    expected: "a number of seconds, over 0 and at most 600",
    fallback: "60",
    schema: one(seconds({ over: 0, most: 600 })),
  },
  loadTimeout: {
    flags: "--load-timeout <seconds>",
    help: "how long loading the metric may take, its imports included",
    expected: "a number of seconds, over 0 and at most 3600",
    fallback: "300",
    schema: one(seconds({ over: 0, most: 3600 })),
  },
  seed: {
    flags: "--seed <n>",
    help: "seed Python's and numpy's random generators before each case, from this number and the case's id",
    expected: "a whole number from 0 to 18446744073709551615",
    schema: one(
      z
        .string()
        .regex(/^\d{1,20}$/)
        .transform(BigInt)
        .refine((value) => value < 2n ** 64n),
    ),
  },
  maxMessageBytes: {
    flags: "--max-message-bytes <size>",
    help: "largest message that is accepted, such as 64MiB or 500000",
    expected: "a size from 1KiB to 1GiB, such as 64MiB or 500000",
    fallback: "64MiB",
    schema: one(bytes(1024, 1024 ** 3)),
  },
  run: {
    flags: "--run <file>",
    help: "run code: a Python file that defines run(artifact, input), which makes the output of cases that have none",
    expected: "a file that can be read",
    schema: one(file()),
  },
  runTimeout: {
    flags: "--run-timeout <seconds>",
    help: "how long one run may take; at most 600",
    expected: "a number of seconds, over 0 and at most 600",
    fallback: "60",
    schema: one(seconds({ over: 0, most: 600 })),
  },
  maxRuns: {
    flags: "--max-runs <n>",
    help: "most runs at a time (default: one for each core, since runs that share a core are measured slower)",
    expected: "a whole number from 1 to 1024",
    schema: one(whole(1, 1024)),
  },
  artifact: {
    flags: "--artifact <file>",
    help: "the artifact that is run on each case that has no output: a .json file's value, any other file's text",
    expected: "a file that can be read",
    schema: one(file()),
  },
  metricModel: {
    flags: "--metric-model <name>",
    help: "the model that the metric's llm() asks, such as gpt-4o-mini (default: the reflection model)",
    expected: "a model's name",
    schema: one(text()),
  },
  reflectionModel: {
    flags: "--reflection-model <name>",
    help: "the engine's own model; llm() asks it where there is no --metric-model",
    expected: "a model's name",
    schema: one(text()),
  },
  modelBaseUrl: {
    flags: "--model-base-url <url>",
    help: "where models are: anything that speaks OpenAI's chat completions (default: https://api.openai.com/v1)",
    expected: "an http or https URL",
    schema: one(z.string().refine((url) => /^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ""))),
  },
  modelApiKeyEnv: {
    flags: "--model-api-key-env <name>",
    help: "the environment variable with the provider's key, which no metric and no run code gets to see",
    expected: "an environment variable's name",
    fallback: "OPENAI_API_KEY",
    schema: one(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/)),
  },
  prices: {
    flags: "--prices <file>",
    help: "a JSON file with prices that override or add to those of the catalogue; docs/models.md has its format",
    expected: "a file that can be read",
    schema: one(file()),
  },
  maxCost: {
    flags: "--max-cost <usd>",
    help: "make no more model calls, of metrics and of runs together, once they have cost so many US dollars",
    expected: "an amount such as 5 or 0.25",
    schema: one(z.string().regex(/^\d{1,9}(\.\d{1,9})?$/)),
  },
  drainTimeout: {
    flags: "--drain-timeout <seconds>",
    help: "how long running cases may still take after SIGTERM",
    expected: "a number of seconds from 0 to 3600",
    fallback: "10",
    schema: one(seconds({ least: 0, most: 3600 })),
  },
  watch: {
    flags: "--watch",
    help: "load the metric again when its file, or a Python file beside it, changes",
    expected: "true or false",
    fallback: "false",
    schema: one(flag()),
  },
  stopWithStdin: {
    flags: "--stop-with-stdin",
    help: "stop when standard input ends; for programs that start a sidecar, so that it never outlives them; its own start and end are then logged at debug",
    expected: "true or false",
    fallback: "false",
    schema: one(flag()),
  },
  privateFolder: {
    flags: "--private-folder <folder>",
    help: "remove this folder, once it is empty, when the sidecar ends",
    expected: "a folder's path",
    schema: one(text()),
    isHidden: true,
  },
  logLevel: {
    flags: "--log-level <level>",
    help: "least serious entry that is logged: debug, info, warn, error or silent",
    expected: "one of debug, info, warn, error, silent",
    fallback: "info",
    schema: one(z.enum(["debug", "info", "warn", "error", "silent"])),
  },
  logFormat: {
    flags: "--log-format <format>",
    help: "how logs are written: pretty, json, or auto (pretty on a terminal)",
    expected: "one of auto, pretty, json",
    fallback: "auto",
    schema: one(z.enum(["auto", "pretty", "json"])),
  },
  cases: {
    flags: "--cases <file>",
    help: "the cases: a CSV, JSON or JSON Lines file, or - for standard input",
    expected: "a file, or - for standard input",
    schema: one(text()),
  },
  format: {
    flags: "--format <format>",
    help: "what --cases holds: csv, json, jsonl, or auto (by the file's name, else by its first bytes)",
    expected: "one of auto, csv, json, jsonl",
    fallback: "auto",
    schema: one(z.enum(["auto", "csv", "json", "jsonl"])),
  },
  inputColumns: {
    flags: "--input-columns <names>",
    help: "columns that make up the input, with commas between (default: those that no other option names)",
    expected: "names of columns with commas between",
    schema: names(),
    isRepeatable: true,
  },
  outputColumns: {
    flags: "--output-columns <names>",
    help: "columns that hold the expected values, with commas between (default: none)",
    expected: "names of columns with commas between",
    schema: names(),
    isRepeatable: true,
  },
  predictionColumn: {
    flags: "--prediction-column <name>",
    help: "the column that holds what the artifact produced: the output to score",
    expected: "a column's name",
    schema: one(text()),
  },
  idColumn: {
    flags: "--id-column <name>",
    help: "the column that names each case (default: cases are told by their line)",
    expected: "a column's name",
    schema: one(text()),
  },
  output: {
    flags: "--output <file>",
    help: "write every result to this file, one JSON object a line, in the order of the cases",
    expected: "a file's path",
    schema: one(text()),
  },
  maxErrors: {
    flags: "--max-errors <n>",
    help: "stop once so many cases have ended in an error (default: never)",
    expected: "a whole number from 1 to 4294967295",
    schema: one(whole(1, 4294967295)),
  },
  batchSize: {
    flags: "--batch-size <n>",
    help: "most cases in one message",
    expected: "a whole number from 1 to 65536",
    fallback: "256",
    schema: one(whole(1, 65536)),
  },
  json: {
    flags: "--json",
    help: "print JSON for machines instead of text",
    expected: "true or false",
    fallback: "false",
    schema: one(flag()),
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export type OptionName = keyof typeof OPTION_SPECS;
