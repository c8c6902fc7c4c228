import type { Case, JsonBytes } from "./case.js";
import { parseJsonText } from "./json_text.js";
import { ObservationError, type Observations } from "./observations.js";

/** Where an output may come from, besides the sample itself. */
export interface SampleSources {
  readonly artifact: JsonBytes | undefined;
  readonly hasRunCode: boolean;
}

/** Why a sample cannot be given to a metric; `undefined` where it can. */
export function sampleFault(sample: Case, sources: SampleSources): string | undefined {
  const { input, output, expected } = sample;
  if (sample.fault !== undefined) return sample.fault;
  if (input === undefined) return "it has no input; give `input` as a JSON object";
  return (
    (output === undefined ? outputFault(sample, sources) : undefined) ??
    inputFault(input) ??
    jsonFault("output", output) ??
    expectedFault(expected)
  );
}

/** The sample with what was measured of it, so that it can be scored twice; or why its observation cannot be used. */
export function observedSample(
  sample: Case,
  observations: Observations,
): { readonly sample: Case; readonly fault?: string } {
  if (sample.observationId === "") return { sample };
  try {
    return { sample: { ...sample, observationId: "", observed: observations.use(sample.observationId) } };
  } catch (reason) {
    if (reason instanceof ObservationError) return { sample, fault: reason.message };
    throw reason;
  }
}

function outputFault({ observationId }: Case, { artifact, hasRunCode }: SampleSources): string | undefined {
  if (!hasRunCode) {
    return artifact === undefined
      ? "it has no output; give `output` as any JSON value, null included"
      : "it has no output and there is no run code; give `output`, or start the sidecar with --run run.py";
  }
  if (artifact === undefined) return "it has no output, and no artifact to run came with it; give one of both";
  if (observationId !== "") return "it has an observation but no output; the sidecar measures what it runs itself";
  return jsonFault("artifact", artifact);
}

function inputFault(input: JsonBytes): string | undefined {
  return jsonFault("input", input) ?? kindFault("input", parseJsonText(input), "a JSON object with the input fields");
}

function expectedFault(expected: JsonBytes | undefined): string | undefined {
  const fault = jsonFault("expected", expected);
  if (fault !== undefined || expected === undefined) return fault;
  const value = parseJsonText(expected);
  return value === null
    ? undefined
    : kindFault("expected", value, "a JSON object keyed by the Output columns, or null");
}

function kindFault(name: string, value: unknown, wanted: string): string | undefined {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return undefined;
  return `its ${name} is ${kindOf(value)}; expected ${wanted}`;
}

function jsonFault(name: string, bytes: JsonBytes | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  try {
    parseJsonText(bytes);
    return undefined;
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    return `its ${name} is not JSON (${why})`;
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return `a ${typeof value}`;
}
