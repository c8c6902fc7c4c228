import { asObject } from "./json_fields.js";

/** The tokens of one model call, or the sum over several. */
export interface TokenUsage {
  /** Tokens of the prompt, cached ones included. */
  readonly promptTokens: number;
  /** Those of `promptTokens` that the provider served from its cache. */
  readonly cachedPromptTokens: number;
  /** Those of `promptTokens` that the provider wrote to its cache at a price of its own. */
  readonly cacheWriteTokens: number;
  /** Tokens of the completion, reasoning ones included. */
  readonly completionTokens: number;
  /** Those of `completionTokens` that the model spent on reasoning. */
  readonly reasoningTokens: number;
  /** Those of either side that are audio, which has prices of its own. */
  readonly audioTokens: number;
}

/** Of nothing. */
export const NO_TOKENS: TokenUsage = {
  promptTokens: 0,
  cachedPromptTokens: 0,
  cacheWriteTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
  audioTokens: 0,
};

/** What an answer says about its tokens, or why that cannot be used. */
export type UsageReport =
  | { readonly tokens: TokenUsage; readonly reason?: undefined }
  | { readonly tokens: undefined; readonly reason: string };

/**
 * Reads the `usage` object of a chat completion. Providers differ in where they put cached tokens, and in whether
 * `completion_tokens` holds the reasoning tokens; where the total tells that it does not, they are added.
 */
export function readUsage(usage: unknown): UsageReport {
  const fields = asObject(usage);
  if (fields === undefined) return { tokens: undefined, reason: "the answer has no usage" };
  const prompt = asObject(fields["prompt_tokens_details"]) ?? {};
  const completion = asObject(fields["completion_tokens_details"]) ?? {};
  const promptTokens = fields["prompt_tokens"];
  const saidCompletion = fields["completion_tokens"];
  const cachedPromptTokens = prompt["cached_tokens"] ?? fields["prompt_cache_hit_tokens"] ?? 0;
  const cacheWriteTokens = prompt["cache_write_tokens"] ?? 0;
  const reasoningTokens = completion["reasoning_tokens"] ?? 0;
  const audioIn = prompt["audio_tokens"] ?? 0;
  const audioOut = completion["audio_tokens"] ?? 0;
  if (
    !isCount(promptTokens) ||
    !isCount(saidCompletion) ||
    !isCount(cachedPromptTokens) ||
    !isCount(cacheWriteTokens) ||
    !isCount(reasoningTokens) ||
    !isCount(audioIn) ||
    !isCount(audioOut)
  ) {
    return {
      tokens: undefined,
      reason: "the answer's usage has token counts that are missing or are no whole numbers",
    };
  }
  const isReasoningApart =
    reasoningTokens > saidCompletion || fields["total_tokens"] === promptTokens + saidCompletion + reasoningTokens;
  const completionTokens = isReasoningApart ? saidCompletion + reasoningTokens : saidCompletion;
  if (cachedPromptTokens + cacheWriteTokens > promptTokens) {
    const counts = `${cachedPromptTokens + cacheWriteTokens} cached of ${promptTokens} prompt tokens`;
    return { tokens: undefined, reason: `the answer's usage contradicts itself: ${counts}` };
  }
  const audioTokens = audioIn + audioOut;
  return {
    tokens: { promptTokens, cachedPromptTokens, cacheWriteTokens, completionTokens, reasoningTokens, audioTokens },
  };
}

/** The sum, kind by kind. */
export function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    cachedPromptTokens: a.cachedPromptTokens + b.cachedPromptTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    audioTokens: a.audioTokens + b.audioTokens,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
