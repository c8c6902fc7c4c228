import type { JsonBytes } from "./case.js";

/** Reads JSON as Python does: `NaN` and the infinities count as numbers, here 0, outside of strings. Throws where it is none. */
export function parseJsonText(bytes: JsonBytes): unknown {
  const text = decoder.decode(bytes);
  try {
    return JSON.parse(text);
  } catch (reason) {
    if (!NON_FINITE.test(text)) throw reason;
    return JSON.parse(text.replace(STRING_OR_NON_FINITE, (token) => (token.startsWith('"') ? token : "0")));
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const NON_FINITE = /NaN|Infinity/;
const STRING_OR_NON_FINITE = /"(?:[^"\\]|\\.)*"|\bNaN\b|-?\bInfinity\b/gs;
