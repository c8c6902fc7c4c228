import { Code, ConnectError, type ConnectRouter, type ContextValues, type Interceptor } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";

import { JsonValueSchema } from "../gen/skynet/scoring/v1/case_pb.js";

/**
 * What Connect's own code answers to requests that never reach a service: it calls bytes that it cannot decode a fault of the server, and says
 * nothing with the statuses of HTTP itself. Here they become what gRPC says, and words that tell what to send.
 */
export class RequestFaults {
  /** Of requests that a service has taken: what it answers is its own. */
  readonly #taken = new WeakSet<ContextValues>();

  /** `values`: what the adapter gave the request. */
  taken(values: ContextValues): void {
    this.#taken.add(values);
  }

  /** For streams, whose requests are decoded as they are read. */
  readonly interceptor: Interceptor = (next) => async (request) => {
    if (!request.stream) return next(request);
    return next({ ...request, message: explained(request.message) });
  };

  /** Takes the place of the router's handlers; to be called once all routes are in. */
  wrap({ handlers }: ConnectRouter): void {
    handlers.forEach((handler, index) => {
      handlers[index] = Object.assign(this.#wrapped(handler), { ...handler });
    });
  }

  #wrapped(handler: UniversalHandler): (...given: Parameters<UniversalHandler>) => Promise<UniversalServerResponse> {
    return async (request) => {
      const response = await handler(request);
      if (request.contextValues !== undefined && this.#taken.has(request.contextValues)) return response;
      switch (response.status) {
        case 405:
          return refusal(405, "unimplemented", `call ${handler.requestPath} with POST`, response);
        case 415:
          return refusal(415, "invalid_argument", whatToSend(handler), response);
        case 400:
        case 500:
          return decodingFault(response);
        default:
          return response;
      }
    };
  }
}

/** A response whose body says why the request could not be read. */
async function decodingFault(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const error: unknown = JSON.parse(Buffer.concat(await all(response.body)).toString("utf8"));
  const { code, message } = error as { readonly code: string; readonly message?: string };
  return refusal(400, code === "internal" ? "invalid_argument" : code, withAdvice(message ?? ""), response);
}

async function* explained<T>(messages: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* messages;
  } catch (reason) {
    const { code, rawMessage } = ConnectError.from(reason, Code.InvalidArgument);
    throw new ConnectError(withAdvice(rawMessage), code === Code.Internal ? Code.InvalidArgument : code);
  }
}

function withAdvice(message: string): string {
  return message.includes(JsonValueSchema.typeName)
    ? `${message}; a payload is {"value": …} with any JSON, or {"json": "…"} with its text`
    : message;
}

function whatToSend({ requestPath, method }: UniversalHandler): string {
  return method.methodKind === "unary"
    ? `${requestPath} takes JSON with the header content-type: application/json, or a protobuf message with application/proto`
    : `${requestPath} answers with a stream: send Connect's envelopes with the header content-type: application/connect+json or application/connect+proto, or call it over gRPC on this same port, such as with grpcurl`;
}

/** As Connect writes errors, so that its clients read them. */
function refusal(
  status: number,
  code: string,
  message: string,
  response: UniversalServerResponse,
): UniversalServerResponse {
  const header = new Headers(response.header);
  for (const name of ["content-encoding", "content-length"]) header.delete(name);
  header.set("content-type", "application/json");
  return { ...response, status, header, body: one(Buffer.from(JSON.stringify({ code, message }))) };
}

async function all(body: UniversalServerResponse["body"]): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body ?? []) pieces.push(piece);
  return pieces;
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  yield await Promise.resolve(new Uint8Array(bytes));
}
