import type { Observed } from "./result.js";

/** An observation as the worker hands it to the metric; see docs/worker-protocol.md. */
export function observationJson({ id, runMs, usage }: Observed): Uint8Array {
  const { calls, promptTokens, cachedPromptTokens, completionTokens, reasoningTokens, cost } = usage;
  return new TextEncoder().encode(
    JSON.stringify({
      id,
      run_ms: runMs,
      run_not_measured_reason: "",
      cost_usd: cost.usd?.toNumber() ?? null,
      cost_not_measured_reason: cost.reason ?? "",
      usage: {
        calls,
        prompt_tokens: promptTokens,
        cached_prompt_tokens: cachedPromptTokens,
        completion_tokens: completionTokens,
        reasoning_tokens: reasoningTokens,
      },
    }),
  );
}
