import type { IncomingMessage, ServerResponse } from "node:http";

import { type Charge, readChatAnswer } from "../model/chat_answer.js";
import type { Models } from "../model/open_models.js";
import type { ProviderReply } from "../model/provider.js";
import { readBody } from "../model/read_body.js";
import { askForUsage, type MeteredRequest } from "../model/stream_options.js";
import { StreamUsage } from "../model/stream_usage.js";
import type { ObservedCalls } from "../scoring/observations.js";
import { readRequest, write } from "./gateway_body.js";
import { NOT_JSON, redirected, refuse, TOO_LARGE, WRONG_TOKEN } from "./gateway_refusal.js";

/** What the gateway needs of the models. */
export type GatewayModels = Pick<Models, "account" | "provider">;

/** One caller's request for a completion. */
export interface Completion {
  readonly models: GatewayModels;
  readonly maxMessageBytes: number;
  readonly calls: ObservedCalls;
  /** Whether the observation is still open. */
  readonly isOpen: () => boolean;
  /** Aborted when the caller is gone, or the run over. */
  readonly abort: AbortController;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Serves one completion, and bills it to the caller's observation. Throws what `refusalOf` reads. */
export async function complete(completion: Completion): Promise<void> {
  const { models, maxMessageBytes, calls, abort, response } = completion;
  const body = await readRequest(completion.request, maxMessageBytes);
  const request = body === undefined ? undefined : askForUsage(body);
  if (request === undefined) {
    refuse(response, body === undefined ? TOO_LARGE : NOT_JSON);
    return;
  }
  if (!completion.isOpen()) {
    refuse(response, WRONG_TOKEN);
    return;
  }
  const ended = calls.begin(() => {
    abort.abort();
  });
  try {
    const bill = await models.account.open(request.model, calls.meter);
    await answer(completion, request, (cost) => {
      if (cost === "unknown") bill.chargeUnknown("a call ended before its answer and usage were there");
      else if (cost !== "nothing") bill.charge(cost);
      bill.close();
      ended();
    });
  } finally {
    ended();
  }
}

/** Says what the call is billed by, before the caller can know that the answer is whole: a run may end with it. Only the first time counts. */
type Settle = (cost: Charge | "nothing" | "unknown") => void;

async function answer(completion: Completion, request: MeteredRequest, bill: Settle): Promise<void> {
  let isSettled = false;
  const settle: Settle = (cost) => {
    if (isSettled) return;
    isSettled = true;
    bill(cost);
  };
  const { models, abort, response } = completion;
  let reply: ProviderReply | undefined;
  try {
    const { signal } = abort;
    reply = await models.provider.send({ method: "POST", path: "chat/completions", body: request.body, signal });
    if (reply.status >= 300) {
      settle("nothing");
      await passOn(models, reply, response);
    } else if (request.isStream && reply.header("content-type")?.includes("event-stream") === true) {
      await stream(models, reply, request, response, settle);
    } else {
      await whole(models, reply, response, settle);
    }
  } finally {
    // A connection that failed before there was a status costs nothing.
    settle(reply === undefined && !abort.signal.aborted ? "nothing" : "unknown");
  }
}

async function whole(
  { provider }: GatewayModels,
  reply: ProviderReply,
  response: ServerResponse,
  settle: Settle,
): Promise<void> {
  const text = provider.key.redact(await readBody(reply));
  const { status } = reply;
  const { charge } = readChatAnswer({ status, text, requestId: undefined, contentType: undefined });
  settle(charge ?? "nothing");
  send(reply, text, response);
}

/** Passes a stream on as it comes, but for the usage where it was the gateway that asked for it. */
async function stream(
  { provider }: GatewayModels,
  reply: ProviderReply,
  request: MeteredRequest,
  response: ServerResponse,
  settle: Settle,
): Promise<void> {
  const usage = new StreamUsage(request.isUsageWanted);
  response.writeHead(reply.status, passedHeaders(reply));
  for await (const chunk of reply.body) {
    const parts = usage.push(chunk);
    if (usage.isWhole) settle(usage.charge());
    for (const part of parts) await write(response, provider.key.redactBytes(part));
  }
  settle(usage.charge());
  for (const part of usage.end()) await write(response, provider.key.redactBytes(part));
  response.end();
}

/** Passes on an answer that nobody is billed for: an error, or a list. */
export async function passOn(
  { provider }: GatewayModels,
  reply: ProviderReply,
  response: ServerResponse,
): Promise<void> {
  const text = provider.key.redact(await readBody(reply));
  if (reply.status >= 300 && reply.status < 400) refuse(response, redirected(reply.status));
  else send(reply, text, response);
}

function send(reply: ProviderReply, text: string, response: ServerResponse): void {
  response.writeHead(reply.status, { ...passedHeaders(reply), "content-length": Buffer.byteLength(text) });
  response.end(text);
}

/** Those of the provider's headers that clients act on. */
function passedHeaders(reply: ProviderReply): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of PASSED_HEADERS) {
    const value = reply.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

const PASSED_HEADERS = ["content-type", "x-request-id", "request-id", "retry-after", "retry-after-ms", "cache-control"];
