import Table from "cli-table3";

import type { CaseSet } from "../cases/read_cases.js";
import { placeOf } from "../cases/source.js";
import { cutMiddle, cutToWidth, oneLine, stdoutColors as pc } from "../terminal_text.js";
import type { RunOutcome } from "./run.js";
import { type Spending, costText, notMeasuredText, spendingJson } from "./spending.js";
import type { RunningStatistics } from "./statistics.js";
import type { LowCase, Tally } from "./tally.js";

/** What a summary tells of beside the run's outcome. */
export interface SummaryParts {
  readonly cases: CaseSet;
  readonly run: RunOutcome;
  readonly metricFingerprint: string;
  readonly output: { readonly path: string; readonly written: number } | undefined;
}

/**
 * The summary for people.
 *
 * @param terminalWidth no line is wider; `undefined`: there is no terminal, and errors stand in full.
 */
export function summaryText({ cases, run, output }: SummaryParts, terminalWidth: number | undefined): string {
  const width = terminalWidth ?? WIDTH_ELSEWHERE;
  const { tally, scoringMs } = run;
  const blocks: string[] = [];
  if (tally.score.count > 0) {
    blocks.push(scoreTable([["score", tally.score], ...tally.named], width).toString());
  }
  if (tally.errors.size > 0) {
    const table = plainTable(["errors", "cases", "first"], ["left", "right", "left"]);
    const codeWidth = Math.max(...[...tally.errors.keys()].map((code) => code.length));
    for (const [code, { count: cases_, first }] of tally.errors) {
      const message = `${caseName(first, cases)}: ${oneLine(first.message)}`;
      const room = terminalWidth === undefined ? Infinity : Math.max(20, width - codeWidth - 11);
      // The end says where: the file and the line.
      table.push([pc.red(code), number(cases_), cutMiddle(message, room)]);
    }
    blocks.push(table.toString());
  }
  if (tally.lowest.length > 0) blocks.push(lowestTable(tally.lowest, cases, width).toString());
  const [p50, p99] = tally.metricMs.at(0.5, 0.99);
  const facts = [
    `${number(tally.results)} of ${number(cases.lines.length)} cases`,
    ...(p50 === undefined || p99 === undefined
      ? []
      : [`metric time p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}`]),
    ...measuredFacts(tally, width),
    `scored in ${(scoringMs / 1000).toFixed(3)} s (${number(Math.round(perSecond(run)))} cases/s)`,
  ];
  blocks.push(facts.join("\n"));
  if (output !== undefined) {
    blocks.push(
      output.written === 0
        ? `nothing was written to ${output.path}`
        : `${count(output.written, "result")} in ${output.path}`,
    );
  }
  // The table pads its last column too; blanks at the end of a line are in the way of whoever copies it.
  return `${blocks.join("\n\n").replace(/ +$/gm, "")}\n`;
}

/** What runs took and cost, and apart from that what the metric's own model calls cost. */
function measuredFacts({ runMs, runsOfUnknownTime, runCost, metricCost }: Tally, width: number): string[] {
  const [p50, p99] = runMs.at(0.5, 0.99);
  const unknown = runsOfUnknownTime === 0 ? [] : [`not measured for ${count(runsOfUnknownTime, "case")}`];
  const known = p50 === undefined || p99 === undefined ? [] : [`p50 ${milliseconds(p50)}`, `p99 ${milliseconds(p99)}`];
  return [
    ...(runCost.cases === 0 ? [] : [`run time ${[...known, ...unknown].join(", ")}`]),
    ...spendingFacts("run", runCost, width),
    ...spendingFacts("judge", metricCost, width),
  ];
}

function spendingFacts(whose: string, spending: Spending, width: number): string[] {
  if (spending.cases === 0) return [];
  const note = notMeasuredText(spending);
  return [`${whose} cost ${costText(spending)}`, ...(note === undefined ? [] : wrapped(oneLine(note), width))];
}

/** Lines that fit, set in; a word that does not is left whole. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines;
}

/** The summary for machines; what is not known is null. */
export function summaryJson({ cases, run, output, metricFingerprint }: SummaryParts): object {
  const { tally, end, scoringMs } = run;
  const [p50 = null, p99 = null] = tally.metricMs.at(0.5, 0.99);
  const [runP50 = null, runP99 = null] = tally.runMs.at(0.5, 0.99);
  return {
    end: end.kind.replaceAll(" ", "_"),
    ...(end.kind === "failed" ? { failure: end.error.message } : {}),
    cases: cases.lines.length,
    results: tally.results,
    scored: tally.score.count,
    errors: tally.errorCount,
    errors_by_code: Object.fromEntries([...tally.errors].map(([code, kind]) => [code, kind.count])),
    score: statisticsJson(tally.score),
    scores: Object.fromEntries([...tally.named].map(([name, statistics]) => [name, statisticsJson(statistics)])),
    metric_ms: { p50, p99 },
    run_ms: { p50: runP50, p99: runP99, cases_not_measured: tally.runsOfUnknownTime },
    run_cost: spendingJson(tally.runCost),
    judge_cost: spendingJson(tally.metricCost),
    scoring_seconds: scoringMs / 1000,
    cases_per_second: perSecond(run),
    lowest: tally.lowest.map(({ id, index, value, feedback }) => ({
      id,
      index,
      line: cases.lines[index] ?? null,
      score: value,
      feedback,
    })),
    metric_fingerprint: metricFingerprint,
    ...(output === undefined ? {} : { output: output.path, output_results: output.written }),
  };
}

/** How people are told of a case: by its id, else by where it stands in the file, with the index that results have. */
export function caseName({ id, index }: { readonly id: string; readonly index: number }, cases: CaseSet): string {
  if (id !== "") return oneLine(id);
  const ordinal = cases.unit === "case" ? { ordinal: index + 1 } : {};
  return `${placeOf({ line: cases.lines[index] ?? 0, ...ordinal })}, index ${String(index)}`;
}

function scoreTable(scores: readonly (readonly [string, RunningStatistics])[], width: number): Table.Table {
  const rows = scores.map(([, statistics]) => {
    const interval = statistics.confidence95;
    return [
      number(statistics.count),
      decimal(statistics.mean),
      decimal(statistics.standardDeviation),
      interval === undefined ? "–" : `${decimal(interval[0])} to ${decimal(interval[1])}`,
    ];
  });
  const head = ["cases", "mean", "sd", "95 % confidence"];
  const taken = head.map((title, place) => 2 + Math.max(title.length, ...rows.map((row) => row[place]?.length ?? 0)));
  const room = width - taken.reduce((sum, columns) => sum + columns);
  const table = plainTable(["", ...head], ["left", "right", "right", "right", "left"]);
  scores.forEach(([name], place) => {
    table.push([pc.bold(cutToWidth(oneLine(name), Math.max(8, room))), ...(rows[place] ?? [])]);
  });
  return table;
}

function lowestTable(lowest: readonly LowCase[], cases: CaseSet, width: number): Table.Table {
  const table = plainTable(["lowest", "score", "feedback"], ["left", "right", "left"]);
  const names = lowest.map((low) => cutToWidth(caseName(low, cases), 28));
  const scores = lowest.map(({ value }) => decimal(value));
  const taken =
    Math.max(6, ...names.map((name) => name.length)) + Math.max(5, ...scores.map((text) => text.length)) + 4;
  lowest.forEach(({ feedback }, place) => {
    table.push([
      names[place] ?? "",
      scores[place] ?? "",
      cutToWidth(oneLine(feedback), Math.max(20, width - taken - 1)),
    ]);
  });
  return table;
}

/** Columns two blanks apart, without lines around them: it reads well and can be copied. */
function plainTable(head: string[], colAligns: ("left" | "right")[]): Table.Table {
  const nothing = "";
  return new Table({
    head: head.map((text) => pc.dim(text)),
    colAligns,
    chars: {
      top: nothing,
      "top-mid": nothing,
      "top-left": nothing,
      "top-right": nothing,
      bottom: nothing,
      "bottom-mid": nothing,
      "bottom-left": nothing,
      "bottom-right": nothing,
      left: nothing,
      "left-mid": nothing,
      mid: nothing,
      "mid-mid": nothing,
      right: nothing,
      "right-mid": nothing,
      middle: "  ",
    },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
}

function statisticsJson(statistics: RunningStatistics): object {
  return {
    cases: statistics.count,
    mean: statistics.mean ?? null,
    sd: statistics.standardDeviation ?? null,
    ci95: statistics.confidence95 ?? null,
  };
}

/** For a file or a pipe, which have no width of their own. */
const WIDTH_ELSEWHERE = 100;

function perSecond({ tally, scoringMs }: RunOutcome): number {
  return scoringMs === 0 ? 0 : (tally.results * 1000) / scoringMs;
}

function decimal(value: number | undefined): string {
  if (value === undefined) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toPrecision(4) : value.toFixed(4);
}

function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(3) : value.toFixed(1)} ms`;
}

function number(value: number): string {
  return value.toLocaleString("en");
}

function count(value: number, what: string): string {
  return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}
