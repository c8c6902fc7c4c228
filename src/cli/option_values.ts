import { parse } from "csv-parse/sync";
import { z } from "zod";

import { whyUnreadable } from "./input_file.js";

/** The schemas of option values. Each gets text; what it accepts in words stands beside its use. */

/** An option that counts once: of several, the last. */
export function one<T>(schema: z.ZodType<T, string>): z.ZodType<T, string[]> {
  return z
    .array(z.string())
    .transform((given) => given.at(-1) ?? "")
    .pipe(schema);
}

export function text(): z.ZodType<string, string> {
  return z.string().min(1);
}

/** A whole number in decimal digits. */
export function whole(least: number, most: number): z.ZodType<number, string> {
  return z.string().regex(/^\d+$/).transform(Number).pipe(z.number().min(least).max(most));
}

/** Seconds, given as milliseconds. */
export function seconds(range: { over?: number; least?: number; most: number }): z.ZodType<number, string> {
  const { over = -Infinity, least = -Infinity, most } = range;
  return z
    .string()
    .regex(/^(\d+(\.\d*)?|\.\d+)$/)
    .transform(Number)
    .pipe(z.number().gt(over).min(least).max(most))
    .transform((value) => value * 1000);
}

/** A size such as `500000`, `64MiB` or `1 GiB`, given as bytes. */
export function bytes(least: number, most: number): z.ZodType<number, string> {
  return z
    .string()
    .transform((size) => {
      const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(size.trim()) ?? [];
      return number === "" ? NaN : Number(number) * (UNITS[unit.toLowerCase()] ?? NaN);
    })
    .pipe(z.number().int().min(least).max(most));
}

export function flag(): z.ZodType<boolean, string> {
  return z
    .string()
    .toLowerCase()
    .pipe(z.union([yes.transform(() => true), no.transform(() => false)]));
}

/** A file that exists and can be read. Its failure says why it cannot. */
export function file(): z.ZodType<string, string> {
  return z.string().superRefine((path, context) => {
    const why = whyUnreadable(path);
    if (why !== undefined) context.addIssue({ code: "custom", message: why, params: { why } });
  });
}

/** Names with commas between, as one CSV record: a name that holds a comma stands in double quotes. */
export function names(): z.ZodType<string[], string[]> {
  return z
    .array(z.string())
    .transform((given, context) => {
      try {
        return given.flatMap((list) => parse(list, { trim: true, relax_column_count: true }).flat());
      } catch {
        context.addIssue({ code: "custom", message: "not a list of names" });
        return z.NEVER;
      }
    })
    .pipe(z.array(z.string().min(1)).min(1));
}

/** `host:port`, `[v6]:port` or `unix:/path`. */
export function address(leastPort: number): z.ZodType<string, string> {
  return z.string().refine((given) => {
    if (given.startsWith("unix:")) {
      const path = given.slice("unix:".length);
      return path !== "" && Buffer.byteLength(path) <= MOST_SOCKET_PATH_BYTES;
    }
    const [, port] = /^(?:\[[0-9A-Fa-f:.%]+\]|[^\s:[\]/]+):(\d{1,5})$/.exec(given) ?? [];
    return port !== undefined && Number(port) >= leastPort && Number(port) <= 65535;
  });
}

const yes = z.enum(["true", "1", "yes", "on"]);
const no = z.enum(["false", "0", "no", "off"]);

/** The system's limit on a socket's path, less the byte that ends it. */
const MOST_SOCKET_PATH_BYTES = 103;

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1000,
  mb: 1000 ** 2,
  gb: 1000 ** 3,
  k: 1024,
  kib: 1024,
  m: 1024 ** 2,
  mib: 1024 ** 2,
  g: 1024 ** 3,
  gib: 1024 ** 3,
};
