import { CASE_OPTIONS, readCasesOf } from "./case_options.js";
import { CommandError, EXIT, UsageError } from "./exit.js";
import { SIDECAR_OPTIONS, openClient } from "./open_client.js";
import type { OptionName } from "./option_specs.js";
import type { ReadOptions } from "./options.js";
import { checkOutput } from "./score/output_guard.js";
import { type Progress, startProgress } from "./score/progress.js";
import { ResultsFile } from "./score/results_file.js";
import { type RunEnd, type RunOutcome, runCases } from "./score/run.js";
import { type SummaryParts, summaryJson, summaryText } from "./score/summary.js";
import { abortOn } from "./stop_signals.js";

export const SCORE_OPTIONS = [
  ...SIDECAR_OPTIONS,
  ...CASE_OPTIONS,
  "output",
  "maxErrors",
  "batchSize",
  "json",
] as const satisfies readonly OptionName[];

/** `skynet-scorer score`: scores every case of a file and sums up. Nothing is started before the whole file was read and found right. */
export async function score(options: ReadOptions<(typeof SCORE_OPTIONS)[number]>): Promise<number> {
  const { values } = options;
  if (values.cases === undefined)
    throw new UsageError("--cases: which cases? Give --cases FILE, or --cases - for standard input");
  if (values.output !== undefined) {
    checkOutput(options.asGiven("output"), values.output, [
      { what: "the metric", path: values.metric },
      { what: "the file of the cases", path: values.cases },
      { what: "the run code", path: values.run },
      { what: "the artifact", path: values.artifact },
      { what: "the file of prices", path: values.prices },
      { what: "the Python interpreter", path: values.python },
    ]);
  }
  const stop = abortOn(["SIGINT", "SIGTERM", "SIGHUP"], EXIT.interrupted);
  const cases = await readCasesOf(values.cases, values, values, stop.signal);

  for (const note of cases.gaps.expectedNotes()) process.stderr.write(`skynet-scorer: ${note}\n`);

  let progress: Progress | undefined;
  const writeLine = (line: string): void => {
    if (progress === undefined) process.stderr.write(`${line}\n`);
    else progress.writeLine(line);
  };
  const { client, explain, close, isOwn } = await openClient(options, { reports: "score", writeLine }, stop.signal);
  try {
    const metric = await client.describe();
    const hasTraceback = isOwn && / line \d+\)$/.test(metric.loadError);
    const whereToLook = hasTraceback ? `; for the traceback: skynet-scorer check --metric ${values.metric ?? ""}` : "";
    if (!metric.loaded) throw new CommandError(`the metric is not loaded: ${metric.loadError}${whereToLook}`);
    const file = values.output === undefined ? undefined : new ResultsFile(values.output);
    progress = startProgress(cases.lines.length, process.stderr);
    const run = await runCases({ client, cases, progress, file, maxErrors: values.maxErrors, signal: stop.signal });
    progress = undefined;
    const output =
      file === undefined || values.output === undefined ? undefined : { path: values.output, written: file.written };
    const parts: SummaryParts = { cases, run, metricFingerprint: metric.fingerprint, output };
    process.stdout.write(
      values.json
        ? `${JSON.stringify(summaryJson(parts))}\n`
        : `\n${summaryText(parts, process.stdout.isTTY ? process.stdout.columns : undefined)}`,
    );
    return await conclude(run, parts, explain);
  } finally {
    progress?.stop();
    await close();
    stop.dispose();
  }
}

/** Says on standard error why a run ended before its last case, and gives the exit code. */
async function conclude(
  run: RunOutcome,
  parts: SummaryParts,
  explain: (error: Error) => Promise<string>,
): Promise<number> {
  const { end, tally } = run;
  if (end.kind !== "complete") {
    const why = await reason(end, explain);
    const kept = parts.output === undefined ? "" : `; ${keptIn(parts.output)}`;
    process.stderr.write(
      `skynet-scorer: ${why}: ${String(tally.results)} of ${String(parts.cases.lines.length)} cases have a result${kept}\n`,
    );
  }
  if (end.kind === "interrupted") return EXIT.interrupted;
  return end.kind === "complete" && tally.errorCount === 0 ? EXIT.ok : EXIT.failed;
}

function keptIn({ path, written }: { readonly path: string; readonly written: number }): string {
  return written === 0 ? `nothing was written to ${path}` : `${path} has ${String(written)} of them`;
}

async function reason(
  end: Exclude<RunEnd, { kind: "complete" }>,
  explain: (error: Error) => Promise<string>,
): Promise<string> {
  switch (end.kind) {
    case "interrupted":
      return "interrupted";
    case "too many errors":
      return "stopped at --max-errors";
    case "failed":
      return explain(end.error);
  }
}
