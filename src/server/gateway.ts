import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

import { ModelCallError } from "../model/call_error.js";
import { readCharge } from "../model/chat_answer.js";
import { asObject, parseJson } from "../model/json_fields.js";
import type { Models } from "../model/open_models.js";
import { ConnectionError, type ProviderReply } from "../model/provider.js";
import { askForUsage, type MeteredRequest } from "../model/stream_options.js";
import { StreamUsage } from "../model/stream_usage.js";
import type { Observations, ObservedCalls } from "../scoring/observations.js";
import type { Log } from "../worker/log.js";

/** What the gateway needs of the models. */
export type GatewayModels = Pick<Models, "account" | "provider">;

export interface GatewayOptions {
  readonly observations: Observations;
  readonly models: GatewayModels;
  /** The largest request body. */
  readonly maxMessageBytes: number;
  readonly log: Log;
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
    serve(options, request, response).catch((reason: unknown) => {
      if (response.destroyed) return;
      options.log.error({ err: reason }, "a call through the gateway failed through a fault of the sidecar");
      if (response.headersSent) response.destroy();
      else refuse(response, INTERNAL);
    });
  };
}

async function serve(options: GatewayOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const calls = options.observations.gatewayOf(bearerToken(request));
  if (calls === undefined) {
    refuse(response, WRONG_TOKEN);
    return;
  }
  const gone = new AbortController();
  response.once("close", () => {
    gone.abort();
  });
  const signal = AbortSignal.any([gone.signal, calls.signal]);
  const path = request.url?.split("?")[0];
  try {
    if (request.method === "GET" && path === "/v1/models") {
      await passOn(await options.models.provider.send({ method: "GET", path: "models", signal }), response);
    } else if (request.method === "POST" && path === "/v1/chat/completions") {
      await complete(options, calls, request, response, signal);
    } else {
      refuse(response, NOT_SERVED);
    }
  } catch (reason) {
    const refusal = refusalOf(reason, signal);
    if (refusal === undefined) throw reason;
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) refuse(response, refusal);
  }
}

async function complete(
  { models, maxMessageBytes }: GatewayOptions,
  calls: ObservedCalls,
  incoming: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const body = await readRequest(incoming, maxMessageBytes);
  const request = body === undefined ? undefined : askForUsage(body);
  if (request === undefined) {
    refuse(response, body === undefined ? TOO_LARGE : NOT_JSON);
    return;
  }
  const ended = calls.begin();
  try {
    const bill = await models.account.open(request.model, calls.meter);
    let billed = false;
    try {
      const reply = await models.provider.send({
        method: "POST",
        path: "chat/completions",
        body: request.body,
        signal,
      });
      if (reply.status >= 300) {
        billed = true;
        await passOn(reply, response);
        return;
      }
      const charge = request.isStream ? await stream(reply, request, response) : await whole(reply, response);
      bill.charge(charge);
      billed = true;
    } finally {
      if (!billed) bill.chargeUnknown("a call ended before its answer and usage were there");
      bill.close();
    }
  } finally {
    ended();
  }
}

/** Passes a whole answer on, and reads what it is billed by. */
async function whole(reply: ProviderReply, response: ServerResponse): Promise<ReturnType<typeof readCharge>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of reply.body) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  writeHead(reply, response);
  response.end(body);
  return readCharge(asObject(parseJson(body.toString("utf8"))) ?? {});
}

/** Passes a stream on as it comes; the usage, which the gateway asked for, goes by. */
async function stream(
  reply: ProviderReply,
  request: MeteredRequest,
  response: ServerResponse,
): Promise<ReturnType<StreamUsage["charge"]>> {
  const usage = new StreamUsage(request.isUsageWanted);
  writeHead(reply, response);
  for await (const chunk of reply.body) for (const part of usage.push(chunk)) await write(response, part);
  for (const part of usage.end()) await write(response, part);
  response.end();
  return usage.charge();
}

async function passOn(reply: ProviderReply, response: ServerResponse): Promise<void> {
  writeHead(reply, response);
  for await (const chunk of reply.body) await write(response, chunk);
  response.end();
}

/** Those of the provider's headers that clients act on. */
const PASSED_HEADERS = ["content-type", "x-request-id", "request-id", "retry-after", "retry-after-ms", "cache-control"];

function writeHead(reply: ProviderReply, response: ServerResponse): void {
  const headers = PASSED_HEADERS.flatMap((name) => {
    const value = reply.header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  response.writeHead(reply.status, Object.fromEntries(headers));
}

/** Resolves when there is room for more, or the caller is gone. */
async function write(response: ServerResponse, part: Uint8Array): Promise<void> {
  if (response.write(part) || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

/** The body as text; `undefined` where it is larger than allowed. */
async function readRequest(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function bearerToken({ headers }: IncomingMessage): string {
  return /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
}

/** An error as the OpenAI API writes it. */
interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
}

const WRONG_TOKEN: Refusal = {
  status: 401,
  type: "invalid_request_error",
  code: "invalid_api_key",
  message:
    "the key is not the token of a run that is going on; make the client inside run(), where OPENAI_API_KEY holds the run's own token, or use the token of an open observation",
};
const NOT_SERVED: Refusal = {
  status: 404,
  type: "invalid_request_error",
  code: "not_found",
  message: "the gateway serves POST /v1/chat/completions and GET /v1/models, since it can meter those",
};
const NOT_JSON: Refusal = {
  status: 400,
  type: "invalid_request_error",
  code: "invalid_json",
  message: "the request's body is not a JSON object",
};
const TOO_LARGE: Refusal = {
  status: 413,
  type: "invalid_request_error",
  code: "request_too_large",
  message: "the request's body is larger than the sidecar's --max-message-bytes",
};
const INTERNAL: Refusal = {
  status: 500,
  type: "server_error",
  code: "internal",
  message: "the sidecar failed on this call through a fault of its own; its log has the error",
};

/** What the caller is told of a failure that is not the sidecar's; `undefined` for one that is. */
function refusalOf(reason: unknown, signal: AbortSignal): Refusal | undefined {
  if (signal.aborted) {
    return { status: 499, type: "server_error", code: "run_over", message: "the run that made this call is over" };
  }
  if (reason instanceof ConnectionError) {
    return { status: 502, type: "server_error", code: "provider_unreachable", message: reason.message };
  }
  if (reason instanceof ModelCallError) {
    return { status: 403, type: "insufficient_quota", code: reason.kind, message: reason.message };
  }
  return undefined;
}

function refuse(response: ServerResponse, { status, type, code, message }: Refusal): void {
  // Whatever of the request is still to come is not read.
  const headers = { "content-type": "application/json", ...(response.req.complete ? {} : { connection: "close" }) };
  response.writeHead(status, headers);
  response.end(JSON.stringify({ error: { message, type, param: null, code } }));
}
