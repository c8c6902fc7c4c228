import pino from "pino";

import { stderrHasColors } from "./terminal_text.js";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
export type LogFormat = "auto" | "pretty" | "json";

/** A log on standard error: for people on a terminal, JSON otherwise. */
export async function openLog(level: LogLevel, format: LogFormat): Promise<pino.Logger> {
  const destination = new BoundedWriter(process.stderr);
  const isPretty = format === "pretty" || (format === "auto" && process.stderr.isTTY);
  const pretty = isPretty ? await prettyPrinter() : undefined;
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: pino.stdSerializers.err } },
    {
      write: (line: string) => {
        destination.write(pretty === undefined ? line : pretty(line));
      },
    },
  );
}

/** Makes a JSON log line readable. Imported only when it is needed: JSON logs are the rule. */
export async function prettyPrinter(): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  return prettyFactory({
    colorize: stderrHasColors,
    translateTime: "SYS:HH:MM:ss.l",
    // Most entries are lines that a metric printed: one line each. A traceback needs its own.
    singleLine: true,
    colorizeObjects: false,
    ignore: "pid,hostname,traceback",
    messageFormat: (entry, messageKey) => {
      const { [messageKey]: message, traceback } = entry;
      const lines = [typeof message === "string" ? message.trimEnd() : ""];
      if (typeof traceback === "string" && traceback !== "") lines.push(...traceback.trimEnd().split("\n"));
      return lines.join("\n    ");
    },
  });
}

/** What a bounded writer writes to. */
export interface Sink {
  readonly writableLength: number;
  write(text: string): boolean;
  on(event: "error" | "drain", listener: () => void): unknown;
}

/**
 * Writes without ever waiting. Node writes to a pipe without blocking and keeps what the reader has not taken; beyond
 * the bound, entries are dropped and later counted in the log, so that a reader that stopped reading costs a little
 * memory and nothing else. (A file descriptor written on a thread would hold up the exit of the process.)
 */
export class BoundedWriter {
  #dropped = 0;
  #isBroken = false;

  constructor(
    private readonly sink: Sink,
    private readonly mostBytes = MOST_BUFFERED_BYTES,
  ) {
    // The reader is gone: there is nobody left to tell.
    sink.on("error", () => (this.#isBroken = true));
    sink.on("drain", () => {
      this.#tellDropped();
    });
  }

  write(text: string): void {
    if (this.#isBroken) return;
    if (this.sink.writableLength > this.mostBytes) {
      this.#dropped += 1;
      return;
    }
    this.#tellDropped();
    this.sink.write(text);
  }

  #tellDropped(): void {
    if (this.#dropped === 0 || this.#isBroken) return;
    const entry = { level: 40, time: new Date().toISOString(), dropped: this.#dropped, msg: DROPPED_MESSAGE };
    this.#dropped = 0;
    this.sink.write(`${JSON.stringify(entry)}\n`);
  }
}

const MOST_BUFFERED_BYTES = 1024 * 1024;
const DROPPED_MESSAGE = "log entries were dropped, since nobody read standard error fast enough";
