import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

import type { ObservedCalls, Observations } from "../scoring/observations.js";
import type { Log } from "../worker/log.js";
import { complete, type GatewayModels, passOn } from "./gateway_completion.js";
import { breakOff, INTERNAL, NOT_SERVED, refusalOf, refuse, WRONG_CALLER, WRONG_TOKEN } from "./gateway_refusal.js";
import { isCalledBy, type IsCalledBy } from "./run_caller.js";

export type { GatewayModels } from "./gateway_completion.js";

/** What the gateway meters by, and asks. */
export interface GatewayOptions {
  readonly observations: Observations;
  readonly models: GatewayModels;
  /** The largest request body. */
  readonly maxMessageBytes: number;
  readonly log: Log;
  /** Tells whether a call comes from the run that its token belongs to; replaced in tests. */
  readonly isCalledBy?: IsCalledBy;
}

/** Whether a request is for the gateway. */
export function isGatewayPath(url: string | undefined): boolean {
  return url?.startsWith("/v1/") === true;
}

/**
 * The part of the OpenAI API through which run code reaches models. The provider's key stays here; the caller's key is the token of an
 * observation, against which each call is metered.
 */
export function gatewayHandler(options: GatewayOptions): RequestListener {
  return (request, response) => {
    void serve(options, request, response);
  };
}

async function serve(options: GatewayOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const abort = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) abort.abort();
  });
  try {
    await route(options, request, response, abort);
  } catch (reason) {
    // Whoever left hears nothing any more.
    if (response.destroyed || (request.destroyed && !request.complete)) return;
    const refusal = refusalOf(reason, abort.signal);
    if (refusal === undefined) {
      options.log.error({ err: reason }, "a call through the gateway failed through a fault of the sidecar");
    }
    if (response.headersSent) breakOff(response, refusal ?? INTERNAL);
    else refuse(response, refusal ?? INTERNAL);
  }
}

async function route(
  { observations, models, maxMessageBytes, isCalledBy: isCaller = isCalledBy }: GatewayOptions,
  request: IncomingMessage,
  response: ServerResponse,
  abort: AbortController,
): Promise<void> {
  const token = bearerToken(request);
  const calls = observations.gatewayOf(token);
  const path = request.url?.split("?")[0];
  if (calls === undefined) {
    refuse(response, WRONG_TOKEN);
  } else if (!(await isOwn(calls, request.socket, isCaller))) {
    refuse(response, WRONG_CALLER);
  } else if (request.method === "GET" && path === "/v1/models") {
    const { signal } = abort;
    await passOn(models, await models.provider.send({ method: "GET", path: "models", signal }), response);
  } else if (request.method === "POST" && path === "/v1/chat/completions") {
    const isOpen = (): boolean => observations.gatewayOf(token) === calls;
    await complete({ models, maxMessageBytes, calls, isOpen, abort, request, response });
  } else {
    refuse(response, NOT_SERVED);
  }
}

/** Looked at once for each connection and run. */
async function isOwn(calls: ObservedCalls, socket: Socket, isCaller: IsCalledBy): Promise<boolean> {
  if (calls.process === undefined || OWN_CALLS.get(socket) === calls) return true;
  const isOwn = await isCaller(socket, calls.process);
  if (isOwn) OWN_CALLS.set(socket, calls);
  return isOwn;
}

const OWN_CALLS = new WeakMap<Socket, ObservedCalls>();

function bearerToken({ headers }: IncomingMessage): string {
  return /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
}
