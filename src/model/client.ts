import type { Log } from "../worker/log.js";
import type { CallBill, ModelAccount } from "./account.js";
import { ModelCallError, type CallSpending, type ModelCallFailure } from "./call_error.js";
import { CallLimit } from "./call_limit.js";
import { readChatAnswer, type RawAnswer } from "./chat_answer.js";
import { sentParameters, type ModelRequest, type SentParameters } from "./chat_request.js";
import type { Meter } from "./meter.js";
import { chooseModel, type ChosenModels } from "./model_choice.js";
import { ConnectionError, type ModelProvider, type ProviderReply } from "./provider.js";
import { readBody } from "./read_body.js";
import { refusedParameter, RefusedParameters, type OptionalParameter } from "./refused_parameters.js";
import { askedDelayMs, isRetriedStatus, retryDelayMs, RETRY_POLICY, type RetryPolicy } from "./retry_delay.js";
import { isInsufficientQuota, statusFailure } from "./status_failure.js";

/** What a model answered. */
export interface ModelAnswer extends CallSpending {
  /** Never empty. */
  readonly text: string;
  readonly finishReason: string | undefined;
  /** The provider's name for the request, for its support. */
  readonly requestId: string | undefined;
}

/** What surrounds one call; all of it may be left out. */
export interface CompleteOptions {
  /** Aborts the call, wherever it is. */
  readonly signal?: AbortSignal;
  /** When the answer is of no more use, on the clock of `performance.now()`; no try begins after it. */
  readonly deadlineAt?: number;
  /** Counts the call, whatever comes of it. */
  readonly meter?: Meter;
}

/** What a client asks through, and in whose name. `retry`: default `RETRY_POLICY`. */
export interface ModelClientOptions {
  readonly provider: ModelProvider;
  readonly account: ModelAccount;
  readonly models: ChosenModels;
  readonly log: Log;
  readonly retry?: RetryPolicy;
}

/** Asks models: one method, any number of calls at a time. */
export class ModelClient {
  readonly #refused = new RefusedParameters();
  readonly #retry: RetryPolicy;
  #toldAt = -Infinity;

  constructor(private readonly options: ModelClientOptions) {
    this.#retry = options.retry ?? RETRY_POLICY;
  }

  /** Whether a call that names no model goes to one. */
  get hasModel(): boolean {
    const { metricModel, reflectionModel } = this.options.models;
    return metricModel !== undefined || reflectionModel !== undefined;
  }

  /** Asks for one chat completion. Throws `ModelCallError`, and nothing else; its cost is counted then too. */
  async complete(request: ModelRequest, { signal, deadlineAt, meter }: CompleteOptions = {}): Promise<ModelAnswer> {
    const model = chooseModel(request.model, this.options.models);
    const bill = await this.options.account.open(model, meter);
    const ownDeadline = performance.now() + (request.timeoutMs ?? Infinity);
    const limit = new CallLimit(signal, Math.min(ownDeadline, deadlineAt ?? Infinity));
    try {
      const outcome = await this.#tryUntilAnswered({ request, model, bill, limit });
      const spending = bill.close();
      if (outcome.kind === "answer") return { ...outcome.answer, ...spending };
      throw new ModelCallError(outcome.failure, spending);
    } finally {
      limit.release();
      bill.close();
    }
  }

  async #tryUntilAnswered(call: Call): Promise<Answered | Failed> {
    for (let retries = 0; ;) {
      const parameters = sentParameters(call.request, this.#refused.of(call.model));
      const outcome = await this.#tryOnce(call, parameters);
      if (outcome.kind === "answer") return outcome;
      if (outcome.refused !== undefined) {
        // The next try is without it, so this cannot go round for ever.
        this.#leaveOut(call.model, outcome.refused, outcome.failure);
      } else {
        const delayMs = this.#delayMs(outcome, retries);
        if (delayMs === undefined) return outcome;
        if (delayMs >= call.limit.leftMs()) return withNote(outcome, noTimeLeft(outcome.askedMs));
        this.#tellRetry(outcome.failure, delayMs);
        retries += 1;
        await call.limit.sleep(delayMs);
        if (call.limit.endedBy() !== undefined)
          return withNote(ended(call.limit), `, after ${outcome.failure.message}`);
      }
      call.bill.admit();
    }
  }

  async #tryOnce(call: Call, parameters: SentParameters): Promise<Answered | Failed> {
    const { limit, bill, model, request } = call;
    if (limit.endedBy() !== undefined) return ended(limit);
    const body = JSON.stringify({ model, messages: request.messages, ...parameters });
    const path = "chat/completions";
    let reply: ProviderReply | undefined;
    try {
      reply = await this.options.provider.send({ method: "POST", path, body, signal: limit.signal });
      const answer = await this.#read(reply);
      return this.#judge(call, parameters, reply, answer);
    } catch (error) {
      const isBilled = reply === undefined ? limit.endedBy() !== undefined : reply.status < 300;
      if (isBilled) bill.chargeUnknown("a call ended before its answer and usage were there");
      if (limit.endedBy() !== undefined) return ended(limit);
      if (!(error instanceof ConnectionError)) throw error;
      const failure = { kind: "unreachable", message: error.message, status: reply?.status } as const;
      return { kind: "failed", failure, isRetried: error.isRetried };
    }
  }

  async #read(reply: ProviderReply): Promise<RawAnswer> {
    return {
      status: reply.status,
      requestId: reply.header("x-request-id") ?? reply.header("request-id"),
      contentType: reply.header("content-type"),
      text: this.options.provider.key.redact(await readBody(reply)),
    };
  }

  #judge({ bill }: Call, parameters: SentParameters, reply: ProviderReply, answer: RawAnswer): Answered | Failed {
    const askedMs = askedDelayMs(reply.header.bind(reply));
    if (answer.status < 200 || answer.status > 299) {
      const sent = Object.keys(parameters) as OptionalParameter[];
      return {
        kind: "failed",
        failure: statusFailure(answer, this.options.provider.key, reply.header("location")),
        isRetried: isRetriedStatus(answer.status) && !isInsufficientQuota(answer),
        askedMs,
        refused: refusedParameter(answer.status, answer.text, sent),
      };
    }
    const outcome = readChatAnswer(answer);
    if (outcome.charge !== undefined) bill.charge(outcome.charge);
    if (outcome.failure === undefined) {
      const { text, finishReason } = outcome;
      return { kind: "answer", answer: { text, finishReason, requestId: answer.requestId } };
    }
    const { failure } = outcome;
    const isRetried = failure.kind === "provider_status" && isRetriedStatus(failure.status ?? 0);
    return { kind: "failed", failure, isRetried, askedMs };
  }

  /** `undefined`: no further try. */
  #delayMs({ isRetried, askedMs }: Failed, retries: number): number | undefined {
    if (!isRetried || retries >= this.#retry.mostRetries) return undefined;
    return retryDelayMs(retries, askedMs, this.#retry);
  }

  #leaveOut(model: string, parameter: OptionalParameter, failure: ModelCallFailure): void {
    if (!this.#refused.add(model, parameter)) return;
    const fields = { model, parameter, provider_message: failure.providerMessage };
    this.options.log.warn(
      fields,
      `the model does not support ${parameter}: it is left out of all calls to it from now on`,
    );
  }

  /** With many calls in flight a provider's hiccup is one event: one line a second tells enough. */
  #tellRetry({ message, status }: ModelCallFailure, delayMs: number): void {
    const now = performance.now();
    const level = now - this.#toldAt >= 1000 ? "warn" : "debug";
    if (level === "warn") this.#toldAt = now;
    this.options.log[level]({ status, delay_ms: Math.round(delayMs) }, `a model call is tried again: ${message}`);
  }
}

interface Call {
  readonly request: ModelRequest;
  readonly model: string;
  readonly bill: CallBill;
  readonly limit: CallLimit;
}

interface Answered {
  readonly kind: "answer";
  readonly answer: Omit<ModelAnswer, keyof CallSpending>;
}

/** What came of one try that gave no answer. */
interface Failed {
  readonly kind: "failed";
  readonly failure: ModelCallFailure;
  /** Whether another try can help. */
  readonly isRetried: boolean;
  /** How long the provider asks to wait. */
  readonly askedMs?: number | undefined;
  /** The parameter that the model does not support. */
  readonly refused?: OptionalParameter | undefined;
}

function ended(limit: CallLimit): Failed {
  const seconds = Math.max(0, Math.round(limit.spanMs)) / 1000;
  const failure =
    limit.endedBy() === "aborted"
      ? ({ kind: "aborted", message: "the model call was given up by whoever made it" } as const)
      : ({ kind: "timeout", message: `the model call did not end within the ${seconds} s that it had` } as const);
  return { kind: "failed", failure, isRetried: false };
}

function noTimeLeft(askedMs: number | undefined): string {
  const asked = askedMs === undefined ? "" : ` in ${Math.ceil(askedMs / 1000)} s`;
  return `; there is no time left to try again${asked}`;
}

function withNote(outcome: Failed, note: string): Failed {
  return { ...outcome, failure: { ...outcome.failure, message: outcome.failure.message + note } };
}
