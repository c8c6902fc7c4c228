import {
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";

import type { CallContext } from "../services/call_context.js";
import { CallError } from "../services/errors.js";
import type { CallKind } from "./open_calls.js";

/** One method on serialized messages, whatever its shape: a unary one takes one request and gives one response. */
export interface GrpcMethod {
  readonly path: string;
  readonly kind: CallKind;
  /** `requests` throws once the client has left. */
  handle(requests: AsyncIterable<Uint8Array>, context: CallContext): AsyncIterable<Uint8Array>;
}

/** A unary method, with generated code for its messages. */
export function unary<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  handle: (request: MessageShape<I>, context: CallContext) => MessageShape<O> | Promise<MessageShape<O>>,
  kind: CallKind = "work",
): GrpcMethod {
  return {
    path: methodPath(method),
    kind,
    async *handle(requests, context) {
      const request = decode(method.input, await onlyMessage(method, requests));
      yield toBinary(method.output, await handle(request, context));
    },
  };
}

/** A method of one request and a stream of responses. */
export function serverStreaming<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  handle: (request: MessageShape<I>, context: CallContext) => AsyncIterable<MessageShape<O>>,
  kind: CallKind = "work",
): GrpcMethod {
  return {
    path: methodPath(method),
    kind,
    async *handle(requests, context) {
      const request = decode(method.input, await onlyMessage(method, requests));
      for await (const response of handle(request, context)) yield toBinary(method.output, response);
    },
  };
}

/** A method of a stream of requests and a stream of responses. */
export function bidiStreaming<I extends DescMessage, O extends DescMessage>(
  method: DescMethodBiDiStreaming<I, O>,
  handle: (requests: AsyncIterable<MessageShape<I>>, context: CallContext) => AsyncIterable<MessageShape<O>>,
  kind: CallKind = "work",
): GrpcMethod {
  async function* decoded(requests: AsyncIterable<Uint8Array>): AsyncGenerator<MessageShape<I>, void, undefined> {
    for await (const bytes of requests) yield decode(method.input, bytes);
  }
  return {
    path: methodPath(method),
    kind,
    async *handle(requests, context) {
      for await (const response of handle(decoded(requests), context)) yield toBinary(method.output, response);
    },
  };
}

/** As it stands in the request's `:path`. */
export function methodPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The one request of a method that takes one. */
export async function onlyMessage(method: DescMethod, requests: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let only: Uint8Array | undefined;
  for await (const bytes of requests) {
    if (only !== undefined) throw wrongCount(method, "more than one");
    only = bytes;
  }
  if (only === undefined) throw wrongCount(method, "none");
  return only;
}

/** Runs a decoder whose failure is the client's. */
export function decoding<T>(message: DescMessage, decoder: () => T): T {
  try {
    return decoder();
  } catch (reason) {
    if (reason instanceof CallError) throw reason;
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new CallError("invalid_request", `the request is not a valid ${message.typeName} message: ${why}`);
  }
}

function decode<T extends DescMessage>(message: T, bytes: Uint8Array): MessageShape<T> {
  return decoding(message, () => fromBinary(message, bytes));
}

function wrongCount(method: DescMethod, came: string): CallError {
  return new CallError("invalid_request", `${methodPath(method)} takes exactly one request message, and ${came} came`);
}
