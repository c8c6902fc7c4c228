import { fromBinary } from "@bufbuild/protobuf";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

import { type CaseFileOptions, type CaseSet, readCases } from "../../../src/cli/cases/read_cases.js";
import type { Case, JsonValue } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreRequestSchema } from "../../../src/gen/skynet/scoring/v1/score_service_pb.js";

/** A case as the sidecar would get it, each value as JSON text; what is absent is left out. */
export interface SeenCase {
  id?: string;
  input: string | undefined;
  output?: string;
  expected?: string;
}

export interface Columns {
  input?: string[];
  expected?: string[];
  prediction?: string;
  id?: string;
}

const folder = mkdtempSync(join(tmpdir(), "skynet-cases-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A file of this test's own. */
export function caseFile(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Reads a file of this name and content; the prediction's column is `output` unless another is named. */
export async function read(
  name: string,
  content: string | Uint8Array,
  columns: Columns = {},
  rest: Partial<CaseFileOptions> = {},
): Promise<CaseSet> {
  const options: CaseFileOptions = {
    file: caseFile(name, content),
    format: "auto",
    columns: {
      input: columns.input,
      expected: columns.expected ?? [],
      prediction: columns.prediction ?? "output",
      id: columns.id,
    },
    batchSize: 256,
    maxMessageBytes: 64 * 1024 * 1024,
    ...rest,
  };
  return readCases(options, new AbortController().signal);
}

/** What the sidecar would get of a file. */
export async function seen(...given: Parameters<typeof read>): Promise<SeenCase[]> {
  return decode(await read(...given));
}

/** The message of the error that reading the file gives, without the test's own folder. */
export async function failure(...given: Parameters<typeof read>): Promise<string> {
  const outcome = await read(...given).catch((error: unknown) => error);
  if (!(outcome instanceof Error)) throw new Error("the file was read without an error");
  return outcome.message.replaceAll(`${folder}/`, "");
}

export function decode({ requests }: CaseSet): SeenCase[] {
  return requests.flatMap((request) => fromBinary(ScoreRequestSchema, request).cases).map(see);
}

function see({ id, input, output, expected }: Case): SeenCase {
  return {
    ...(id === "" ? {} : { id }),
    input: textOf(input),
    ...(output === undefined ? {} : { output: textOf(output) ?? "" }),
    ...(expected === undefined ? {} : { expected: textOf(expected) ?? "" }),
  };
}

function textOf(value: JsonValue | undefined): string | undefined {
  return value?.kind.case === "json" ? value.kind.value : undefined;
}
