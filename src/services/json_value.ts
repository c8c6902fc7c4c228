import { fromBinary, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";

import type { JsonValue } from "../gen/skynet/scoring/v1/case_pb.js";
import type { JsonBytes } from "../scoring/case.js";
import { CallError } from "./errors.js";

/** A payload as carried over, or why it could not be. */
export type Payload =
  | { readonly bytes: JsonBytes | undefined; readonly fault?: undefined }
  | { readonly bytes: undefined; readonly fault: string };

/** The JSON text of a field; absent where the field, or its `kind`, is not set. `name` is the field's, for the fault. */
export function payloadOfMessage(name: string, message: JsonValue | undefined): Payload {
  switch (message?.kind.case) {
    case undefined:
      return { bytes: undefined };
    case "json":
      return { bytes: encoder.encode(message.kind.value) };
    case "value":
      return payloadOfValue(name, message.kind.value);
  }
}

/** The same for a serialized `google.protobuf.Value`. */
export function payloadOfValueBytes(name: string, bytes: Uint8Array): Payload {
  let value: Value;
  try {
    value = fromBinary(ValueSchema, bytes);
  } catch (reason) {
    return fault(name, reason);
  }
  return payloadOfValue(name, value);
}

/** An artifact is the whole request's, and so is its fault. */
export function artifactBytes(artifact: Payload): JsonBytes | undefined {
  if (artifact.fault !== undefined) throw new CallError("invalid_request", artifact.fault);
  return artifact.bytes;
}

function payloadOfValue(name: string, value: Value): Payload {
  try {
    return { bytes: encoder.encode(JSON.stringify(toJson(ValueSchema, value))) };
  } catch (reason) {
    return fault(name, reason);
  }
}

function fault(name: string, reason: unknown): Payload {
  const why = reason instanceof Error ? reason.message : String(reason);
  return {
    bytes: undefined,
    fault: `\`${name}.value\` cannot be turned into JSON text (${why}); give the exact text as \`${name}.json\``,
  };
}

const encoder = new TextEncoder();
