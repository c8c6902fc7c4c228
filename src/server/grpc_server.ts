import { Metadata, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Socket } from "node:net";

import { type CallContext, FINGERPRINT_HEADER } from "../services/call_context.js";
import { callStatus } from "../services/errors.js";
import type { Log } from "../worker/log.js";
import type { GrpcMethod } from "./grpc_method.js";
import type { OpenCall, OpenCalls } from "./open_calls.js";
import { READ_AHEAD_BYTES, readGate, ReceivedMessage } from "./read_gate.js";
import { ResponseWriter } from "./response_writer.js";

/** The gRPC side of the sidecar; it has no port of its own. */
export interface GrpcServer {
  /** Takes a connection that speaks HTTP/2. */
  readonly accept: (socket: Socket) => void;
  /** Ends every connection: once its streams are done, at the latest after `graceMs`. */
  readonly close: (graceMs: number) => Promise<void>;
}

export interface GrpcServerOptions {
  readonly methods: readonly GrpcMethod[];
  readonly calls: OpenCalls;
  /** A larger request message ends its call with RESOURCE_EXHAUSTED. Responses are split instead. */
  readonly maxMessageBytes: number;
  readonly log: Log;
}

type Call = ServerDuplexStream<ReceivedMessage, Uint8Array>;

/** Serves methods over `@grpc/grpc-js`. All are registered as bidirectional: on the wire there is no difference. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const server = new Server({
    interceptors: [readGate(READ_AHEAD_BYTES)],
    "grpc.max_receive_message_length": options.maxMessageBytes,
    "grpc.max_send_message_length": -1,
    "grpc.enable_channelz": 0,
  });
  for (const method of options.methods) {
    server.register(
      method.path,
      (call: Call) => void serve(method, call, options),
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => new ReceivedMessage(bytes),
      "bidi",
    );
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    accept: (socket) => {
      injector.injectConnection(socket);
    },
    close: (graceMs) => close(server, graceMs),
  };
}

async function serve(method: GrpcMethod, call: Call, { calls, log }: GrpcServerOptions): Promise<void> {
  let open: OpenCall | undefined;
  try {
    open = calls.begin(method.kind);
    call.on("cancelled", open.abandon);
    await respond(method, call, open.signal);
    call.end();
  } catch (reason) {
    fail(call, open?.signal.aborted === true ? open.signal.reason : reason, method, log);
  } finally {
    open?.end();
  }
}

/** Leaving the loop, by whatever way, runs the `finally` blocks of the method's generators. */
async function respond(method: GrpcMethod, call: Call, signal: AbortSignal): Promise<void> {
  const writer = new ResponseWriter(call, signal);
  for await (const response of method.handle(receivedMessages(call, signal), contextOf(call, signal))) {
    await writer.write(response);
    signal.throwIfAborted();
  }
  signal.throwIfAborted();
}

function contextOf(call: Call, signal: AbortSignal): CallContext {
  return {
    signal,
    sendFingerprint: (fingerprint) => {
      const metadata = new Metadata();
      metadata.set(FINGERPRINT_HEADER, fingerprint);
      call.sendMetadata(metadata);
    },
  };
}

/** The call's messages. The gate hears of each when it is handed on. */
async function* receivedMessages(call: Call, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  let wake: () => void = () => undefined;
  const stir = (): void => {
    wake();
  };
  call.on("readable", stir).on("end", stir);
  signal.addEventListener("abort", stir);
  try {
    for (;;) {
      signal.throwIfAborted();
      const message = call.read() as ReceivedMessage | null;
      if (message !== null) {
        message.consumed();
        yield message.bytes;
      } else if (call.readableEnded) {
        return;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    call.off("readable", stir).off("end", stir);
    signal.removeEventListener("abort", stir);
  }
}

/** Ends a call with the status of what was thrown, after what was written before. */
function fail(call: Call, reason: unknown, method: GrpcMethod, log: Log): void {
  const { code, status, message } = callStatus(reason);
  if (code === "internal")
    log.error({ err: reason, method: method.path }, "a call failed through a fault of the sidecar");
  if (!call.destroyed) call.emit("error", Object.assign(new Error(message), { code: status, details: message }));
}

async function close(server: Server, graceMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
  server.forceShutdown();
}
