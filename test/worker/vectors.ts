import { readFileSync } from "node:fs";
import { z } from "zod";

const text = z.string();
const vector = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("message"), name: text, hex: text, message: z.record(text, z.unknown()) }),
  z.object({
    kind: z.literal("chunk"),
    name: text,
    hex: text,
    chunk: z.number(),
    cases: z.array(
      z.object({
        input: text,
        output: text,
        expected: text.nullable(),
        seed: text.nullable(),
        observation: text.nullable().optional(),
      }),
    ),
  }),
  z.object({
    kind: z.literal("rows"),
    name: text,
    hex: text,
    chunk: z.number(),
    finished: z.boolean(),
    metric_ns: text,
    cpu_ns: text,
    wait_ns: text,
    rows: z.array(
      z.object({
        position: z.number(),
        kind: text,
        value: z.number(),
        metric_ms: z.number(),
        texts: z.array(text).length(3),
      }),
    ),
  }),
]);

export type Vector = z.infer<typeof vector>;

/** The frames of test/vectors/frames.jsonl, which both languages must read and write alike. */
export function vectors<K extends Vector["kind"]>(kind: K): Extract<Vector, { kind: K }>[] {
  const lines = readFileSync(new URL("../vectors/frames.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n");
  const all = lines.map((line) => vector.parse(JSON.parse(line)));
  const found = all.filter((one): one is Extract<Vector, { kind: K }> => one.kind === kind);
  if (found.length === 0) throw new Error(`there are no vectors of kind ${kind}`);
  return found;
}

/** A frame's payload, from its bytes as hex. */
export function payload(hex: string): Buffer {
  return Buffer.from(hex, "hex").subarray(5);
}
