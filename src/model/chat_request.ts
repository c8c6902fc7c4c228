import type { OptionalParameter } from "./refused_parameters.js";

/** One chat completion to ask for. What is absent is not sent. */
export interface ModelRequest {
  /** As in OpenAI's chat completions: `{role, content}`, where the content is a text or a list of text and image parts. */
  readonly messages: readonly unknown[];
  /** `undefined`: the metric model, else the reflection model. */
  readonly model?: string | undefined;
  readonly temperature?: number | undefined;
  /** The most tokens that the completion may have. */
  readonly maxTokens?: number | undefined;
  /** As the provider takes it, such as `{"type": "json_object"}`. */
  readonly responseFormat?: unknown;
  /** How long the call may take in all, its retries included, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

/** The optional parameters that the call sets and the model does not refuse. */
export function sentParameters(request: ModelRequest, refused: ReadonlySet<OptionalParameter>): SentParameters {
  const sent: SentParameters = {};
  if (request.temperature !== undefined && !refused.has("temperature")) sent.temperature = request.temperature;
  if (request.maxTokens !== undefined && !refused.has("max_tokens")) sent.max_tokens = request.maxTokens;
  if (request.responseFormat !== undefined && !refused.has("response_format")) {
    sent.response_format = request.responseFormat;
  }
  return sent;
}

/** The optional parameters that go to the provider, by their names in OpenAI's API. */
export type SentParameters = Partial<Record<OptionalParameter, unknown>>;
