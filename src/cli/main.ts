import { CASE_OPTIONS } from "./case_options.js";
import { CHECK_OPTIONS, check } from "./check.js";
import { CommandError, EXIT } from "./exit.js";
import { readOptions } from "./options.js";
import { type CommandOptions, parseArguments } from "./program.js";
import { SCORE_OPTIONS, score } from "./score.js";
import { SERVE_OPTIONS, serve } from "./serve.js";
import { packageVersion } from "./version.js";

async function main(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const invocation = parseArguments(
    argv,
    COMMANDS,
    packageVersion(),
    (text) => process.stdout.write(text),
    process.stdout.columns,
  );
  if (typeof invocation === "number") return invocation;
  const { command, given } = invocation;
  switch (command) {
    case "serve":
      return serve(readOptions(SERVE_OPTIONS, given, environment));
    case "check":
      return check(readOptions(CHECK_OPTIONS, given, environment));
    case "score":
      return score(readOptions(SCORE_OPTIONS, given, environment));
  }
}

const CASE_GROUP = CASE_OPTIONS.filter((name) => name !== "artifact");
const METRIC_GROUPS = {
  "Metric:": ["metric", "metricTimeout", "loadTimeout", "seed", "python"],
  "Workers:": ["startMethod", "workers", "maxWorkers"],
} as const;
const RUN_GROUP = ["run", "runTimeout", "maxRuns"] as const;
const REST_GROUPS = {
  "Models:": ["metricModel", "reflectionModel", "modelBaseUrl", "modelApiKeyEnv", "prices", "maxCost"],
  "Messages and logs:": ["maxMessageBytes", "logLevel", "logFormat"],
} as const;

const COMMANDS: CommandOptions = {
  serve: {
    ...METRIC_GROUPS,
    "Runs of artifacts:": RUN_GROUP,
    ...REST_GROUPS,
    "Serving:": ["listen", "drainTimeout", "watch", "stopWithStdin", "privateFolder"],
  },
  check: {
    "Cases:": CASE_GROUP,
    ...METRIC_GROUPS,
    "Runs of an artifact:": ["artifact", ...RUN_GROUP],
    ...REST_GROUPS,
    "Checking:": ["connect", "json"],
  },
  score: {
    "Cases:": CASE_GROUP,
    ...METRIC_GROUPS,
    "Runs of an artifact:": ["artifact", ...RUN_GROUP],
    ...REST_GROUPS,
    "Scoring:": ["connect", "output", "maxErrors", "batchSize", "json"],
  },
};

/** One line for what is expected to go wrong; the whole error for what is not. */
function report(error: unknown): number {
  if (error instanceof CommandError) {
    process.stderr.write(`skynet-scorer: ${error.message}\n`);
    return error.exitCode;
  }
  if (error instanceof Error && error.name === "AbortError") return EXIT.interrupted;
  // The system refused something: no fault of the program, and its stack says nothing to whoever has to act.
  if (error instanceof Error && "syscall" in error) {
    process.stderr.write(`skynet-scorer: ${error.message}\n`);
    return EXIT.failed;
  }
  process.stderr.write(`skynet-scorer: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.failed;
}

// Whoever reads the output has gone (`skynet-scorer … | head`): there is nobody left to write for.
process.stdout.on("error", () => process.exit(EXIT.failed));
const exitCode = await main(process.argv.slice(2), process.env).catch(report);
// What was printed goes out first; what is still open (standard input, say) must not keep the process.
process.stdout.write("", () => process.exit(exitCode));
