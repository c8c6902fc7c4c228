import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

import type { CaseValues, NamedValue } from "./columns.js";

/** One case as the bytes of a `skynet.scoring.v1.Case`: each value's exact text, never decoded. */
export function encodeCase(id: string, values: CaseValues): Uint8Array {
  const writer = new BinaryWriter();
  if (id !== "") writer.tag(CASE.id, WireType.LengthDelimited).string(id);
  writeJson(writer, CASE.input, joinObject(values.input));
  if (values.prediction !== undefined) writeJson(writer, CASE.output, values.prediction);
  if (values.expected.length > 0) writeJson(writer, CASE.expected, joinObject(values.expected));
  return writer.finish();
}

/** The bytes of a request whose field 1 is `repeated Case cases` and whose field 2 is the artifact: `ScoreRequest`, `ScoreBatchRequest` and `CheckContractRequest` alike. */
export function encodeRequest(cases: readonly Uint8Array[], artifact?: Uint8Array): Uint8Array {
  const writer = new BinaryWriter();
  if (artifact !== undefined) writeJson(writer, ARTIFACT, artifact);
  for (const item of cases) writer.tag(CASES, WireType.LengthDelimited).bytes(item);
  return writer.finish();
}

/** Bytes that a case takes in a request beside its own: a tag and a length. */
export const CASE_FRAME_BYTES = 6;

function writeJson(writer: BinaryWriter, field: number, text: Uint8Array): void {
  writer.tag(field, WireType.LengthDelimited).fork().tag(JSON_TEXT, WireType.LengthDelimited).bytes(text).join();
}

function joinObject(members: readonly NamedValue[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [name, text] of members) {
    parts.push(Buffer.from(`${parts.length === 0 ? "{" : ","}${JSON.stringify(name)}:`), text);
  }
  parts.push(Buffer.from(parts.length === 0 ? "{}" : "}"));
  return Buffer.concat(parts);
}

/** Field numbers of `proto/skynet/scoring/v1/case.proto`. */
const CASE = { id: 1, input: 2, output: 3, expected: 4 } as const;
const JSON_TEXT = 1;
const CASES = 1;
const ARTIFACT = 2;
