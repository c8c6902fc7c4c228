import { create, toBinary } from "@bufbuild/protobuf";

import { CaseResultSchema } from "../gen/skynet/scoring/v1/case_pb.js";
import type { CaseResult } from "../scoring/result.js";
import { measuredOf } from "./score_messages.js";

/**
 * The fields of a `CaseResult` that runs and model calls bring, as they stand in it on the wire; empty where there are none. They come with work
 * that takes milliseconds, so that generated code may write them.
 */
export function measuredBytes(result: CaseResult): Uint8Array {
  const { observation, metricUsage, output } = result;
  if (observation === undefined && metricUsage === undefined && output === undefined) return NONE;
  return toBinary(CaseResultSchema, create(CaseResultSchema, measuredOf(result)));
}

const NONE = new Uint8Array();
