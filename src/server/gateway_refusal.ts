import type { ServerResponse } from "node:http";

import { ModelCallError } from "../model/call_error.js";
import { ConnectionError } from "../model/provider.js";

/** An error as the OpenAI API writes it. */
export interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
}

/** No run or observation that is going on has this token. */
export const WRONG_TOKEN: Refusal = {
  status: 401,
  type: "invalid_request_error",
  code: "invalid_api_key",
  message:
    "the key is not the token of a run that is going on; make the client inside run(), where OPENAI_API_KEY holds the run's own token, or use the token of an open observation",
};
/** The token is good, and comes from a process that it does not belong to. */
export const WRONG_CALLER: Refusal = {
  status: 401,
  type: "invalid_request_error",
  code: "invalid_api_key",
  message:
    "the key is the token of another run; call from the process that runs run(), or from one that it started, with the OPENAI_API_KEY that is in its environment",
};
/** Another path or method of the API. */
export const NOT_SERVED: Refusal = {
  status: 404,
  type: "invalid_request_error",
  code: "not_found",
  message: "the gateway serves POST /v1/chat/completions and GET /v1/models, since it can meter those",
};
/** A body that nothing can be read from. */
export const NOT_JSON: Refusal = {
  status: 400,
  type: "invalid_request_error",
  code: "invalid_json",
  message:
    "the request's body is not a JSON object; send one with `model` and `messages`, as OpenAI's chat completions take it",
};
/** A body over the limit. */
export const TOO_LARGE: Refusal = {
  status: 413,
  type: "invalid_request_error",
  code: "request_too_large",
  message:
    "the request's body is larger than the sidecar's --max-message-bytes; send less, or start the sidecar with a larger one",
};
/** A fault of the sidecar's own. */
export const INTERNAL: Refusal = {
  status: 500,
  type: "server_error",
  code: "internal",
  message: "the sidecar failed on this call through a fault of its own; its log has the error",
};
const RUN_OVER: Refusal = {
  status: 401,
  type: "invalid_request_error",
  code: "run_over",
  message: "the run that made this call is over",
};

/** What a caller is told of a failure that is not the sidecar's; `undefined` for one that is. */
export function refusalOf(reason: unknown, signal: AbortSignal): Refusal | undefined {
  if (signal.aborted) return RUN_OVER;
  if (reason instanceof ConnectionError) {
    return { status: 502, type: "server_error", code: "provider_unreachable", message: reason.message };
  }
  // Of the kinds that clients do not try again.
  if (reason instanceof ModelCallError) {
    return { status: 403, type: "insufficient_quota", code: reason.kind, message: reason.message };
  }
  return undefined;
}

/** A provider that points elsewhere; clients would not follow with a body. */
export function redirected(status: number): Refusal {
  const message = `the provider answered HTTP ${status}, which points elsewhere; check the sidecar's --model-base-url`;
  return { status: 502, type: "server_error", code: "provider_redirects", message };
}

export function refuse(response: ServerResponse, refusal: Refusal): void {
  const body = refusalBody(refusal);
  response.writeHead(refusal.status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
  // A connection that is closed over unread bytes is reset, and the answer may be lost with it.
  response.req.resume();
}

/** The same for a stream that has begun: the error as its last event, and an end that no client takes for a whole answer. */
export function breakOff(response: ServerResponse, refusal: Refusal): void {
  response.write(`data: ${refusalBody(refusal)}\n\n`, () => {
    response.destroy();
  });
}

function refusalBody({ message, type, code }: Refusal): string {
  return JSON.stringify({ error: { message, type, param: null, code } });
}
