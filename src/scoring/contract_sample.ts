import type { Case, JsonBytes } from "./case.js";

/** Why a sample cannot be given to a metric; `undefined` where it can. `hasArtifact`: run code may still make its output. */
export function sampleFault(sample: Case, hasArtifact: boolean): string | undefined {
  const { input, output, expected } = sample;
  if (sample.fault !== undefined) return sample.fault;
  if (input === undefined) return "it has no input; give `input` as a JSON object";
  if (output === undefined && !hasArtifact) return "it has no output; give `output` as any JSON value, null included";
  return inputFault(input) ?? jsonFault("output", output) ?? expectedFault(expected);
}

function inputFault(input: JsonBytes): string | undefined {
  return jsonFault("input", input) ?? kindFault("input", parse(input), "a JSON object with the input fields");
}

function expectedFault(expected: JsonBytes | undefined): string | undefined {
  const fault = jsonFault("expected", expected);
  if (fault !== undefined || expected === undefined) return fault;
  const value = parse(expected);
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
    parse(bytes);
    return undefined;
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    return `its ${name} is not JSON (${why})`;
  }
}

/** As Python reads it: `NaN` and the infinities count as numbers outside of strings. */
function parse(bytes: JsonBytes): unknown {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  return JSON.parse(text.replace(STRING_OR_NON_FINITE, (token) => (token.startsWith('"') ? token : "0")));
}

const STRING_OR_NON_FINITE = /"(?:[^"\\]|\\.)*"|\bNaN\b|-?\bInfinity\b/gs;

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return `a ${typeof value}`;
}
