import { type MessageInitShape, toJson } from "@bufbuild/protobuf";

import {
  CaseErrorCode,
  type CaseResult,
  CaseResultSchema,
  type JsonValueSchema,
} from "../../src/gen/skynet/scoring/v1/case_pb.js";

type JsonValueInit = MessageInitShape<typeof JsonValueSchema>;

/** A case as a message's initial value: what is left out is absent. */
export interface CaseInit {
  readonly id?: string;
  readonly input?: JsonValueInit;
  readonly output?: JsonValueInit;
  readonly expected?: JsonValueInit;
  readonly observationId?: string;
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A value as exact JSON text. */
export function json(value: Json): JsonValueInit {
  return text(JSON.stringify(value));
}

/** Any text in the place of JSON, right or wrong. */
export function text(value: string): JsonValueInit {
  return { kind: { case: "json", value } };
}

/** A case that most metrics here want: they look at `output`, and some at `input`. */
export function caseOf(output: Json, input: Json = {}, expected?: Json): CaseInit {
  const given = { input: json(input), output: json(output) };
  return expected === undefined ? given : { ...given, expected: json(expected) };
}

/** `count` cases with one output, called `<name>-0` and so on. */
export function casesOf(count: number, output: Json, name = "case", input: Json = {}): CaseInit[] {
  return Array.from({ length: count }, (_, place) => ({ ...caseOf(output, input), id: `${name}-${place}` }));
}

/** A whole result without its timing, as protobuf JSON with zeros written out. */
export function plain(result: CaseResult): unknown {
  const { timing, ...rest } = toJson(CaseResultSchema, result, {
    alwaysEmitImplicit: true,
    useProtoFieldName: true,
  }) as Record<string, unknown>;
  if (timing === undefined) throw new Error(`result ${result.index} has no timing`);
  return rest;
}

/** What `plain` gives for a score. */
export function scored(index: number, value: number, feedback: string, more: ScoreExtras = {}): unknown {
  const { id = "", scores = {}, sideInfo = "" } = more;
  return { id, index, score: { value, feedback, scores, side_info_json: sideInfo } };
}

interface ScoreExtras {
  readonly id?: string;
  readonly scores?: Readonly<Record<string, number>>;
  readonly sideInfo?: string;
}

/** What `plain` gives for an error. */
export function failed(index: number, code: keyof typeof CaseErrorCode, message: unknown, id = ""): unknown {
  return { id, index, error: { code: `CASE_ERROR_CODE_${code}`, message } };
}

/** How often each outcome came: `SCORE`, or the error's code. */
export function tally(results: readonly CaseResult[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { outcome } of results) {
    const name = outcome.case === "error" ? CaseErrorCode[outcome.value.code] : "SCORE";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** The side info's other keys, of a case that was scored. */
export function sideInfo(result: CaseResult | undefined): Readonly<Record<string, unknown>> {
  if (result?.outcome.case !== "score")
    throw new Error(`expected a score, got ${JSON.stringify(result && plain(result))}`);
  return JSON.parse(result.outcome.value.sideInfoJson) as Record<string, unknown>;
}
