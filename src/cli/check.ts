import { toJson } from "@bufbuild/protobuf";

import {
  type ContractCheck,
  ContractCheckSchema,
  ContractStatus,
  ContractStep,
  type ContractVerdict,
  ContractVerdictSchema,
} from "../gen/skynet/scoring/v1/contract_service_pb.js";
import { CASE_OPTIONS, readCasesOf } from "./case_options.js";
import { CommandError, EXIT, UsageError } from "./exit.js";
import { SIDECAR_OPTIONS, openClient } from "./open_client.js";
import type { OptionName } from "./option_specs.js";
import type { ReadOptions } from "./options.js";
import { abortOn } from "./stop_signals.js";
import { oneLine, severalLines, stdoutColors as pc } from "./terminal_text.js";

export const CHECK_OPTIONS = [...SIDECAR_OPTIONS, ...CASE_OPTIONS, "json"] as const satisfies readonly OptionName[];

type CheckOptions = ReadOptions<(typeof CHECK_OPTIONS)[number]>;

/** `skynet-scorer check`: tells check by check whether the metric keeps its contract. Without cases, the checks that need them are skipped. */
export async function check(options: CheckOptions): Promise<number> {
  const { values } = options;
  const stop = abortOn(["SIGINT", "SIGTERM", "SIGHUP"], EXIT.interrupted);
  const request = await readSamples(options, stop.signal);
  const isSampled = values.cases !== undefined;
  const writeLine = (line: string): void => void process.stderr.write(`${line}\n`);
  const { client, explain, close } = await openClient(options, { reports: "check", writeLine }, stop.signal);
  let verdict: ContractVerdict | undefined;
  const failed = new Set<ContractStep>();
  try {
    // Waits a bounded time, and says in a sentence where nobody answers.
    await client.describe();
    const checks = client.check(request)[Symbol.asyncIterator]();
    const interrupted = new Promise<never>((_resolve, reject) => {
      stop.signal.addEventListener("abort", () => {
        reject(new CommandError("interrupted", EXIT.interrupted));
      });
    });
    for (;;) {
      const next = await Promise.race([checks.next(), interrupted]);
      if (next.done === true) break;
      const { event } = next.value;
      if (event.case === "check" && event.value.status === ContractStatus.FAILED) failed.add(event.value.step);
      if (event.case === "check")
        process.stdout.write(
          values.json
            ? jsonLine({ check: toJson(ContractCheckSchema, event.value, JSON_FORM) })
            : checkText(event.value, isSampled),
        );
      if (event.case === "verdict") {
        verdict = event.value;
        process.stdout.write(
          values.json
            ? jsonLine({ verdict: toJson(ContractVerdictSchema, verdict, JSON_FORM) })
            : verdictText(verdict, failed, isSampled),
        );
      }
    }
  } catch (error) {
    if (error instanceof CommandError && error.exitCode !== EXIT.interrupted)
      throw new CommandError(await explain(error));
    throw error;
  } finally {
    await close();
    stop.dispose();
  }
  if (verdict === undefined) throw new CommandError("the sidecar ended the check without a verdict");
  return verdict.passed ? EXIT.ok : EXIT.failed;
}

/** The first cases of the file, encoded as a request; a file is checked to its end all the same. */
async function readSamples({ values }: CheckOptions, signal: AbortSignal): Promise<Uint8Array> {
  if (values.cases === undefined) {
    const useless = values.predictionColumn ?? values.outputColumns ?? values.inputColumns ?? values.idColumn;
    if (useless !== undefined) throw new UsageError("--cases: columns are named, but no file; give --cases FILE too");
    return new Uint8Array();
  }
  const { requests, gaps } = await readCasesOf(
    values.cases,
    values,
    { batchSize: SAMPLES, maxMessageBytes: values.maxMessageBytes },
    signal,
  );
  for (const note of [...gaps.predictionNotes(), ...gaps.expectedNotes()]) {
    process.stderr.write(`skynet-scorer: ${note}\n`);
  }
  return requests[0] ?? new Uint8Array();
}

/**
 * One check for people: how it ended, what was found, what to look at, and the traceback of a failure.
 *
 * @param isSampled whether cases were given.
 */
export function checkText(found: ContractCheck, isSampled = true): string {
  const [mark, paint] = MARKS[found.status];
  const isForWant = !isSampled && found.step === ContractStep.SAMPLE_CASES;
  const [message = "", ...details] = isForWant ? [`none were given; ${HOW_TO_SAMPLE}`] : messageLines(found);
  const lines = [`${paint(mark)} ${pc.bold(found.name)}${message === "" ? "" : `: ${message}`}`];
  lines.push(...details.map((line) => `    ${line}`));
  for (const warning of found.warnings) lines.push(`  ${pc.yellow("!")} ${oneLine(warning)}`);
  if (found.traceback !== "")
    lines.push(...severalLines(found.traceback.trimEnd()).map((line) => `    ${pc.dim(line)}`));
  return `${lines.join("\n")}\n`;
}

/** What passed may be told in several lines, one a sample. A failure may quote what a metric raised, and stays one. */
function messageLines({ status, message }: ContractCheck): string[] {
  return status === ContractStatus.PASSED ? severalLines(message) : [oneLine(mergeSamples(message))];
}

/** Equal faults of several samples in one clause: "sample 1: A; sample 2: A; advice" is "samples 1 and 2: A; advice". */
export function mergeSamples(message: string): string {
  const found = [...message.matchAll(/(?:^|; )sample (\d+(?: \("(?:[^"\\]|\\.)*"\))?): /g)];
  const merged = new Map<string, string[]>();
  let advice = "";
  found.forEach((match, place) => {
    const [whole, name = ""] = match;
    let fault = message.slice(match.index + whole.length, found[place + 1]?.index);
    // What follows the last fault is for all of them.
    const same = [...merged.keys()].find((one) => fault.startsWith(`${one}; `));
    if (place === found.length - 1 && same !== undefined) [fault, advice] = [same, fault.slice(same.length)];
    merged.set(fault, [...(merged.get(fault) ?? []), name]);
  });
  const clauses = [...merged].map(([fault, names]) => `${samples(names)}: ${fault}`);
  return message.slice(0, found[0]?.index) + clauses.join("; ") + advice;
}

function samples(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length === 1 ? `sample ${last}` : `samples ${names.slice(0, -1).join(", ")} and ${last}`;
}

function verdictText(verdict: ContractVerdict, failed: ReadonlySet<ContractStep>, isSampled: boolean): string {
  const { passed, passedCount, failedCount, skippedCount, warningCount } = verdict;
  const counts = `${String(passedCount)} passed, ${String(failedCount)} failed, ${String(skippedCount)} skipped`;
  const warnings = warningCount === 0 ? "" : `, ${String(warningCount)} ${warningCount === 1 ? "warning" : "warnings"}`;
  if (passed && !isSampled) {
    const words = pc.yellow("Nothing is wrong so far, and nothing is known of what score() does");
    return `\n${words}: ${counts}${warnings}\nIt was never called; ${HOW_TO_SAMPLE}\n`;
  }
  const isRunAlone = failed.size === 1 && failed.has(ContractStep.RUN_RETURN_VALUE);
  const who = isRunAlone ? "The run code" : "The metric";
  const words = passed ? pc.green(`${who} keeps its contract`) : pc.red(`${who} breaks its contract`);
  return `\n${words}: ${counts}${warnings}\n`;
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

const HOW_TO_SAMPLE = "give --cases FILE and --prediction-column NAME, and --output-columns NAMES for expected values";

const JSON_FORM = { useProtoFieldName: true, alwaysEmitImplicit: true };

const MARKS: Readonly<Record<ContractStatus, readonly [string, (text: string) => string]>> = {
  [ContractStatus.PASSED]: ["✓", pc.green],
  [ContractStatus.FAILED]: ["✗", pc.red],
  [ContractStatus.SKIPPED]: ["–", pc.dim],
  [ContractStatus.UNSPECIFIED]: ["?", pc.dim],
};

/** As many as the contract check uses. */
const SAMPLES = 3;
