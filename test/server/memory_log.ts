import type { Log } from "../../src/worker/log.js";

export interface LogLine {
  readonly level: string;
  readonly fields: object;
  readonly message: string;
}

/** A log that can be looked at. */
export function memoryLog(lines: LogLine[] = []): Log {
  const at =
    (level: string) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields, message });
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
