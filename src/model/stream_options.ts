import { asObject, parseJson } from "./json_fields.js";

/** A caller's request as it goes to the provider. */
export interface MeteredRequest {
  /** The JSON to send: the caller's own bytes, unless the usage had to be asked for. */
  readonly body: string;
  /** The caller's `model`; empty where there is none. */
  readonly model: string;
  readonly isStream: boolean;
  /** Whether the caller asked for the usage itself; see `StreamUsage`. */
  readonly isUsageWanted: boolean;
}

/**
 * Makes a streaming request ask for the usage, which providers else do not send. Nothing more is changed: numbers keep their digits and keys their
 * order. `undefined` where the body is not a JSON object.
 */
export function askForUsage(body: string): MeteredRequest | undefined {
  const request = asObject(parseJson(body));
  if (request === undefined) return undefined;
  const model = typeof request["model"] === "string" ? request["model"] : "";
  const isStream = request["stream"] === true;
  const options = asObject(request["stream_options"]);
  const isUsageWanted = options?.["include_usage"] === true;
  if (!isStream || isUsageWanted) return { body, model, isStream, isUsageWanted };
  return { body: withUsage(body, request), model, isStream, isUsageWanted };
}

function withUsage(body: string, request: Readonly<Record<string, unknown>>): string {
  if ("stream_options" in request) {
    const options = { ...asObject(request["stream_options"]), include_usage: true };
    return JSON.stringify({ ...request, stream_options: options });
  }
  // It has `stream` at least, so that a comma is right.
  return body.replace("{", '{"stream_options":{"include_usage":true},');
}
