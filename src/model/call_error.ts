import { NO_COST, type Cost } from "./cost.js";
import type { TokenUsage } from "./token_usage.js";

/** Why a model call gave no answer. */
export type ModelCallErrorKind =
  /** No model was chosen. */
  | "no_model"
  /** `--max-cost` is spent. */
  | "budget_spent"
  /** The provider answered with a status that is an error, and still did so when tried again where that can help. */
  | "provider_status"
  /** The account has no credit left: trying again cannot help. */
  | "insufficient_quota"
  /** No connection, or it broke. */
  | "unreachable"
  /** The call's time was over. */
  | "timeout"
  /** Whoever made the call gave it up. */
  | "aborted"
  /** Not a chat completion: HTML, invalid JSON, an error under a status of success, no choices. */
  | "invalid_answer"
  | "empty_answer"
  | "refusal"
  | "content_filter"
  /** The answer was cut at the most tokens allowed; `text` holds what there is. */
  | "length";

/** What is known of a model call that failed. No field ever holds the key. */
export interface ModelCallFailure {
  readonly kind: ModelCallErrorKind;
  /** What happened and what to do, in one line. */
  readonly message: string;
  /** The HTTP status; `undefined` where no answer came. */
  readonly status?: number | undefined;
  /** What the provider said, in one line; `undefined` where it said nothing. */
  readonly providerMessage?: string | undefined;
  readonly finishReason?: string | undefined;
  readonly requestId?: string | undefined;
  /** The part of an answer that came, for `length` and `content_filter`. */
  readonly text?: string | undefined;
}

/** What a model call used, whether or not it gave an answer. */
export interface CallSpending {
  /** The model that was asked; empty where none was chosen. */
  readonly model: string;
  /** `undefined` where the provider did not tell. */
  readonly usage: TokenUsage | undefined;
  readonly cost: Cost;
}

/** A model call that gave no answer. Its cost counts all the same. */
export class ModelCallError extends Error implements ModelCallFailure, CallSpending {
  override readonly name = "ModelCallError";
  readonly kind: ModelCallErrorKind;
  readonly status: number | undefined;
  readonly providerMessage: string | undefined;
  readonly finishReason: string | undefined;
  readonly requestId: string | undefined;
  readonly text: string | undefined;
  readonly model: string;
  readonly usage: TokenUsage | undefined;
  readonly cost: Cost;

  constructor(failure: ModelCallFailure, spending: CallSpending = NOTHING_SPENT) {
    super(failure.message);
    this.kind = failure.kind;
    this.status = failure.status;
    this.providerMessage = failure.providerMessage;
    this.finishReason = failure.finishReason;
    this.requestId = failure.requestId;
    this.text = failure.text;
    this.model = spending.model;
    this.usage = spending.usage;
    this.cost = spending.cost;
  }
}

const NOTHING_SPENT: CallSpending = { model: "", usage: undefined, cost: NO_COST };
