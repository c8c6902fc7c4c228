import { describe, expect, test } from "vitest";

import { NO_TOKENS, readUsage } from "../../src/model/token_usage.js";

describe("the usage that a provider reports", () => {
  test.each([
    [
      "OpenAI's",
      { prompt_tokens: 9, completion_tokens: 7, total_tokens: 16 },
      { promptTokens: 9, completionTokens: 7 },
    ],
    [
      "with details",
      {
        prompt_tokens: 9,
        completion_tokens: 7,
        total_tokens: 16,
        prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      { promptTokens: 9, cachedPromptTokens: 4, completionTokens: 7, reasoningTokens: 3 },
    ],
    [
      "with null details",
      { prompt_tokens: 9, completion_tokens: 7, prompt_tokens_details: null, completion_tokens_details: null },
      { promptTokens: 9, completionTokens: 7 },
    ],
    [
      "with cached tokens at the top",
      { prompt_tokens: 9, completion_tokens: 7, prompt_cache_hit_tokens: 8 },
      { promptTokens: 9, cachedPromptTokens: 8, completionTokens: 7 },
    ],
    [
      "with reasoning beside the completion, as the total tells",
      { prompt_tokens: 9, completion_tokens: 7, total_tokens: 19, completion_tokens_details: { reasoning_tokens: 3 } },
      { promptTokens: 9, completionTokens: 10, reasoningTokens: 3 },
    ],
    [
      "with more reasoning than completion",
      { prompt_tokens: 9, completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 3 } },
      { promptTokens: 9, completionTokens: 5, reasoningTokens: 3 },
    ],
  ])("%s", (_, usage, expected) => {
    expect(readUsage(usage).tokens).toEqual({ ...NO_TOKENS, ...expected });
  });

  test.each([{ prompt_tokens: -1 }, { prompt_tokens: 1.5 }, { prompt_tokens: "9" }, { prompt_tokens: null }])(
    "%j is none",
    (fields) => {
      expect(readUsage({ completion_tokens: 1, ...fields }).tokens).toBeUndefined();
    },
  );
});
