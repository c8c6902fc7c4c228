import { ModelCallError } from "../model/call_error.js";
import type { ModelClient } from "../model/client.js";
import type { Cost } from "../model/cost.js";
import { Meter } from "../model/meter.js";
import type { TokenUsage } from "../model/token_usage.js";
import type { ModelCall, ModelReply, ReplyUsage, Worker } from "../worker/types.js";
import type { Assignment } from "./assignment.js";

/** Asks models for the metric: on behalf of a case, for as long as that case has. */
export class ModelCalls {
  constructor(
    private readonly client: Pick<ModelClient, "complete">,
    /** Counts every call of metrics. */
    private readonly total: Meter,
  ) {}

  /** Asks, and answers the worker. `deadlineAt`: when the case's time is up, on `performance.now()`. */
  async ask(worker: Worker, assignment: Assignment, call: ModelCall, deadlineAt: number): Promise<void> {
    const meter = call.chunk === assignment.chunk ? assignment.meter(call.position, this.total) : this.total;
    worker.answer(call.call, await this.#reply(call, { signal: assignment.signal, deadlineAt, meter }));
  }

  async #reply(call: ModelCall, options: Parameters<ModelClient["complete"]>[1]): Promise<ModelReply> {
    const { messages, model, temperature, maxTokens, responseFormat, timeoutMs } = call;
    try {
      const request = { messages, model, temperature, maxTokens, responseFormat, timeoutMs };
      const answer = await this.client.complete(request, options);
      return {
        answer: {
          text: answer.text,
          model: answer.model,
          usage: replyUsage(answer.usage),
          cost_usd: costText(answer.cost),
          cost_not_known_reason: answer.cost.reason ?? "",
        },
      };
    } catch (reason) {
      if (!(reason instanceof ModelCallError)) throw reason;
      return {
        error: {
          message: reason.message,
          status: reason.status ?? null,
          provider_message: reason.providerMessage ?? "",
          finish_reason: reason.finishReason ?? "",
          request_id: reason.requestId ?? "",
          text: reason.text ?? "",
          usage: replyUsage(reason.usage),
          cost_usd: costText(reason.cost),
        },
      };
    }
  }
}

function costText(cost: Cost): string | null {
  return cost.usd?.toFixed() ?? null;
}

function replyUsage(usage: TokenUsage | undefined): ReplyUsage | null {
  if (usage === undefined) return null;
  return {
    prompt_tokens: usage.promptTokens,
    cached_prompt_tokens: usage.cachedPromptTokens,
    completion_tokens: usage.completionTokens,
    reasoning_tokens: usage.reasoningTokens,
  };
}
