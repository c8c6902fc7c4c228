import { ModelCallError } from "../model/call_error.js";
import type { ModelClient } from "../model/client.js";
import type { Cost } from "../model/cost.js";
import type { Meter } from "../model/meter.js";
import type { TokenUsage } from "../model/token_usage.js";
import type { Log } from "../worker/log.js";
import type { ModelCall, ModelReply, ReplyUsage, Worker } from "../worker/types.js";
import type { Assignment } from "./assignment.js";

/** Asks models for the metric: on behalf of a case, for as long as that case has. */
export class ModelCalls {
  constructor(
    private readonly client: Pick<ModelClient, "complete">,
    /** Counts every call of metrics. */
    private readonly total: Meter,
    private readonly log: Log,
  ) {}

  /** Asks, and answers the worker. `deadlineAt`: when the case's time is up, on `performance.now()`. Never rejects. */
  async ask(worker: Worker, assignment: Assignment, call: ModelCall, deadlineAt: number): Promise<void> {
    // A thread that outlived its case asks for nobody.
    const isOfCase = call.chunk === assignment.chunk && call.position !== undefined;
    const own = isOfCase ? assignment.meter(call.position, this.total) : undefined;
    const counted = own?.begin();
    const meter = own?.meter ?? this.total;
    const { signal, ended } = assignment.beginModelCall();
    const reply = await this.#reply(call, { signal, deadlineAt, meter });
    ended();
    counted?.();
    worker.answer(call.call, reply);
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
      const error = reason instanceof ModelCallError ? reason : this.#ownFault(reason);
      return {
        error: {
          message: error.message,
          status: error.status ?? null,
          provider_message: error.providerMessage ?? "",
          finish_reason: error.finishReason ?? "",
          request_id: error.requestId ?? "",
          text: error.text ?? "",
          usage: replyUsage(error.usage),
          cost_usd: costText(error.cost),
        },
      };
    }
  }

  #ownFault(reason: unknown): ModelCallError {
    this.log.error({ err: reason }, "a model call failed through a fault of the sidecar");
    return new ModelCallError({
      kind: "aborted",
      message: "the sidecar failed on this model call through a fault of its own; its log has the error",
    });
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
