import type { Log } from "../../src/worker/log.js";

export interface LogEntry {
  readonly level: keyof Log;
  readonly fields: object;
  readonly message: string;
}

/** A log that keeps what it is told. */
export class RecordingLog implements Log {
  readonly entries: LogEntry[] = [];

  debug = (fields: object, message: string) => void this.entries.push({ level: "debug", fields, message });
  info = (fields: object, message: string) => void this.entries.push({ level: "info", fields, message });
  warn = (fields: object, message: string) => void this.entries.push({ level: "warn", fields, message });
  error = (fields: object, message: string) => void this.entries.push({ level: "error", fields, message });

  /** The messages of warnings. */
  warnings(): string[] {
    return this.entries.filter(({ level }) => level === "warn").map(({ message }) => message);
  }
}
