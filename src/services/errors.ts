import { ScorerError, type ScorerErrorCode } from "../scoring/scorer.js";

/** Why a whole call fails. A case's own fault is its result instead and never one of these. */
export type CallErrorCode =
  | ScorerErrorCode
  /** The request cannot be read, or does not keep to the method's shape. */
  | "invalid_request"
  /** There is nothing of the name that the request gives. */
  | "not_found"
  /** What would have to be sent is larger than one message may be. */
  | "too_large"
  /** The sidecar has no such function yet. */
  | "not_available"
  /** A fault of the sidecar itself; the log has it whole. */
  | "internal";

/** Thrown by services; `ScorerError` is its twin in the layer below. */
export class CallError extends Error {
  override readonly name = "CallError";

  constructor(
    readonly code: CallErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** The canonical status numbers, which gRPC and Connect share. */
export const STATUS_OF: Readonly<Record<CallErrorCode, number>> = {
  cancelled: 1,
  invalid_request: 3,
  not_found: 5,
  too_large: 8,
  metric_not_loaded: 9,
  not_available: 12,
  internal: 13,
  shutting_down: 14,
};

/** What a client is told of a call that failed. */
export interface CallStatus {
  readonly code: CallErrorCode;
  /** The canonical status number. */
  readonly status: number;
  /** One line that fits the trailers; see `statusText`. */
  readonly message: string;
}

/** The one place where what was thrown becomes a status. Foreign errors say nothing of themselves to a client. */
export function callStatus(reason: unknown): CallStatus {
  if (reason instanceof CallError || reason instanceof ScorerError) {
    return { code: reason.code, status: STATUS_OF[reason.code], message: statusText(reason.message) };
  }
  return { code: "internal", status: STATUS_OF.internal, message: INTERNAL_MESSAGE };
}

const INTERNAL_MESSAGE = "the sidecar failed on this call through a fault of its own; its log has the error";

/**
 * A text that trailers can carry: one line, well-formed, and at most `MAX_STATUS_BYTES` once percent-encoded. Longer ones
 * end with a mark. HTTP/2 peers refuse headers beyond a few KiB, and the error would be lost with them.
 */
export function statusText(message: string): string {
  // A message may be megabytes long, and no character encodes to less than one byte.
  const start = Array.from(message.slice(0, MAX_STATUS_BYTES)).map(carriable);
  if (message.length <= MAX_STATUS_BYTES) {
    const whole = start.join("");
    if (encodeURI(whole).length <= MAX_STATUS_BYTES) return whole;
  }
  let text = "";
  let bytes = encodeURI(CUT_MARK).length;
  for (const character of start) {
    bytes += encodeURI(character).length;
    if (bytes > MAX_STATUS_BYTES) break;
    text += character;
  }
  return `${text}${CUT_MARK}`;
}

export const MAX_STATUS_BYTES = 1024;
const CUT_MARK = " ... [cut]";

/** Control characters would break the line, lone surrogates the encoder. */
function carriable(character: string): string {
  if (/^\p{Cc}$/u.test(character)) return " ";
  return /^\p{Cs}$/u.test(character) ? "\u{FFFD}" : character;
}
