/** Reads fields of JSON that somebody else wrote: what has another type than wanted counts as absent. */

/** An object of unknown fields. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The object; `undefined` for anything else, null and arrays included. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** The array; `undefined` for anything else. */
export function asArray(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? (value as readonly unknown[]) : undefined;
}

/** An empty text counts as absent. */
export function asText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** `undefined` where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
