import type { AnswerStep, ScriptedUsage } from "./step.js";

/** A chat completions request, as far as the server looks at it. */
export interface ChatRequest {
  readonly model?: string;
  readonly messages?: readonly { readonly role?: string; readonly content?: unknown }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly [parameter: string]: unknown;
}

/** The whole answer as one JSON object. */
export function completion(request: ChatRequest, step: AnswerStep): object {
  const usage = usageOf(request, step);
  const message = { role: "assistant", content: textOf(step), refusal: step.refusal ?? null };
  return {
    ...head(request, step, "chat.completion"),
    choices:
      step.noChoices === true
        ? []
        : [{ index: 0, message, logprobs: null, finish_reason: step.finishReason ?? "stop" }],
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The same as the texts of events, with the usage where it was asked for. */
export function completionEvents(request: ChatRequest, step: AnswerStep): string[] {
  const base = head(request, step, "chat.completion.chunk");
  const usage = usageOf(request, step);
  const isUsageAsked = request.stream_options?.include_usage === true;
  const withUsage = isUsageAsked && usage !== undefined ? { usage: null } : {};
  const chunk = (delta: object, finish_reason: string | null) => ({
    ...base,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...withUsage,
  });
  const words = textOf(step).split(/(?<= )/);
  const chunks: object[] = [
    chunk({ role: "assistant", content: "" }, null),
    ...words.map((content) => chunk({ content }, null)),
    chunk({}, step.finishReason ?? "stop"),
  ];
  if (isUsageAsked && usage !== undefined) chunks.push({ ...base, choices: [], usage });
  const lineEnd = step.lineEnd ?? "\n";
  return [...chunks.map((each) => JSON.stringify(each)), "[DONE]"].map((data) => `data: ${data}${lineEnd}${lineEnd}`);
}

/** The text of all messages, one a line. */
export function promptText({ messages = [] }: ChatRequest): string {
  return messages
    .map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content ?? "")))
    .join("\n");
}

function head(request: ChatRequest, step: AnswerStep, object: string): object {
  return {
    id: "chatcmpl-scripted",
    object,
    created: 1_700_000_000,
    model: step.model ?? request.model ?? "",
    ...(step.serviceTier === undefined ? {} : { service_tier: step.serviceTier }),
  };
}

function textOf({ text }: AnswerStep): string {
  return text ?? "PASS. It is as it should be.";
}

function usageOf(request: ChatRequest, step: AnswerStep): object | undefined {
  const counts = step.usage === undefined ? estimate(request, step) : step.usage;
  if (counts === null) return undefined;
  return {
    prompt_tokens: counts.prompt,
    completion_tokens: counts.completion,
    total_tokens: counts.prompt + counts.completion,
    prompt_tokens_details: { cached_tokens: counts.cached ?? 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: counts.reasoning ?? 0, audio_tokens: 0 },
  };
}

/** Four characters a token: the same for the same request, which is all that is asked of it. */
function estimate(request: ChatRequest, step: AnswerStep): NonNullable<ScriptedUsage> {
  return { prompt: Math.ceil(promptText(request).length / 4), completion: Math.ceil(textOf(step).length / 4) };
}
