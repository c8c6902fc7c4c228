import { z } from "zod";

import { BoundedWriter, type LogFormat, type LogLevel, prettyPrinter } from "./log.js";

export interface SidecarLogOptions {
  /** What the command reports in its own words, and the log need not say again. */
  readonly reports: "score" | "check";
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Writes a line on a terminal, where it may meet a progress bar. */
  readonly writeLine: (line: string) => void;
}

/** Takes the JSON log of a sidecar that a command started for itself, line by line, and writes what the command does not tell anyway. */
export async function sidecarLog(options: SidecarLogOptions): Promise<(line: string) => void> {
  const onTerminal = process.stderr.isTTY;
  const isPretty = options.format === "pretty" || (options.format === "auto" && onTerminal);
  const pretty = isPretty ? await prettyPrinter() : undefined;
  const bounded = onTerminal ? undefined : new BoundedWriter(process.stderr);
  const isNews = newsFilter(options);
  return (line) => {
    if (!isNews(line)) return;
    const text = (pretty !== undefined && line.startsWith("{") ? pretty(line) : line).trimEnd();
    if (bounded === undefined) options.writeLine(text);
    else bounded.write(`${text}\n`);
  };
}

/**
 * Whether the command does not tell of an entry itself. `check` reports all that is wrong with the metric and with each sample; `score` says
 * why a metric does not load and counts errors by their code, so that one traceback of each kind is news. At level debug all is.
 */
export function newsFilter({
  reports,
  level,
}: Pick<SidecarLogOptions, "reports" | "level">): (line: string) => boolean {
  const seen = new Set<string>();
  return (line) => {
    if (level === "debug") return true;
    const entry = parse(line);
    if (entry === undefined) return true;
    // Which one runs the metric is as the user chose, and what is wrong with it is told otherwise.
    if (entry.about === "interpreter") return false;
    if (entry.about === "metric") return reports === "score" && entry.level < ERROR;
    if (entry.code === undefined || entry.index === undefined) return true;
    if (reports === "check") return false;
    const frames = (entry.traceback ?? "").split("\n").filter((text) => text.startsWith("  File "));
    const kind = `${entry.code} ${frames.at(-1) ?? ""}`;
    if (seen.has(kind)) return false;
    seen.add(kind);
    return true;
  };
}

function parse(line: string): z.output<typeof ENTRY> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return ENTRY.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

/** The parts of an entry that say what it is about: the interpreter, the metric as loaded, or the error of a case. */
const ENTRY = z.object({
  level: z.number(),
  about: z.string().optional(),
  code: z.string().optional(),
  index: z.number().optional(),
  traceback: z.string().optional(),
});

/** pino's number. */
const ERROR = 50;
