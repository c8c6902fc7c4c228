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
] as const satisfies readonly OptionName[];

type CaseOptions = Options<(typeof CASE_OPTIONS)[number]>;

/** Reads the cases that the options name. */
export async function readCasesOf(
  file: string,
  values: CaseOptions,
  sizes: { readonly batchSize: number; readonly maxMessageBytes: number },
  signal: AbortSignal,
): Promise<CaseSet> {
  const { predictionColumn } = values;
  if (predictionColumn === undefined) {
    throw new UsageError(
      "--prediction-column: which column holds the output to score? Name it; running an artifact to get outputs is not available yet",
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
      ...sizes,
    },
    signal,
  );
}
