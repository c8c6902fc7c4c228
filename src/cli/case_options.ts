import { readFileSync } from "node:fs";
import { extname } from "node:path";

import { type CaseSet, readCases } from "./cases/read_cases.js";
import { UsageError } from "./exit.js";
import type { OptionName } from "./option_specs.js";
import type { Options } from "./options.js";

/** The options that say which cases a command uses. */
export const CASE_OPTIONS = [
  "cases",
  "format",
  "inputColumns",
  "outputColumns",
  "predictionColumn",
  "idColumn",
  "artifact",
] as const satisfies readonly OptionName[];

type CaseOptions = Options<(typeof CASE_OPTIONS)[number] | "run" | "connect">;

/** Reads the cases that the options name. */
export async function readCasesOf(
  file: string,
  values: CaseOptions,
  sizes: { readonly batchSize: number; readonly maxMessageBytes: number },
  signal: AbortSignal,
): Promise<CaseSet> {
  const { predictionColumn, artifact } = values;
  if (predictionColumn === undefined && artifact === undefined) {
    throw new UsageError(
      "--prediction-column: which column holds the output to score? Name it, or give --run run.py and --artifact FILE to make outputs",
    );
  }
  refuseTwofoldColumns(values);
  if (artifact !== undefined && values.run === undefined && values.connect === undefined) {
    throw new UsageError(
      "--artifact: what runs it? Give --run run.py too, a Python file that defines run(artifact, input)",
    );
  }
  return readCases(
    {
      file,
      format: values.format,
      columns: {
        input: values.inputColumns,
        expected: values.outputColumns ?? [],
        prediction: predictionColumn,
        id: values.idColumn,
      },
      artifact: artifact === undefined ? undefined : readArtifact(artifact),
      batchSize: sizes.batchSize,
      maxMessageBytes: sizes.maxMessageBytes,
    },
    signal,
  );
}

/** A metric that is shown the output as what was expected, or as the input, would find every output right. */
function refuseTwofoldColumns({ predictionColumn, inputColumns = [], outputColumns = [] }: CaseOptions): void {
  for (const [flag, names] of [
    ["--output-columns", outputColumns],
    ["--input-columns", inputColumns],
  ] as const) {
    if (predictionColumn !== undefined && names.includes(predictionColumn)) {
      throw new UsageError(
        `--prediction-column ${predictionColumn}: ${flag} names it too; a column is either what is scored or what the metric scores it by`,
      );
    }
    const twice = names.find((name, place) => names.indexOf(name) < place);
    if (twice !== undefined) throw new UsageError(`${flag} ${names.join(",")}: it names ${twice} twice; name it once`);
  }
}

/** The artifact as JSON text: what a `.json` file holds, or any other file's text as a string. */
function readArtifact(file: string): Uint8Array {
  const bytes = readFileSync(file);
  if (extname(file).toLowerCase() !== ".json") return Buffer.from(JSON.stringify(bytes.toString("utf8")));
  try {
    JSON.parse(bytes.toString("utf8"));
    return bytes;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--artifact ${file}: it is not JSON (${why}); mend it, or name it otherwise to give its text`);
  }
}
