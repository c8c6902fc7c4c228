import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import {
  Client,
  type ClientDuplexStream,
  credentials,
  type Metadata,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";

import { methodPath } from "../../src/server/grpc_method.js";
import { type Sidecar, type SidecarOptions, startSidecar } from "../../src/server/sidecar.js";
import { memoryLog } from "./memory_log.js";
import { testModels } from "./test_models.js";

export { type LogLine, memoryLog } from "./memory_log.js";

/** Starts a sidecar on a port of 127.0.0.1 that is free. */
export function start(options: Pick<SidecarOptions, "scorer"> & Partial<SidecarOptions>): Promise<Sidecar> {
  const defaults = { listen: ["127.0.0.1:0"], models: testModels(NOWHERE), servesRuns: false, version: "0.0.0-test" };
  return startSidecar({ ...defaults, log: memoryLog(), ...options });
}

/** Nobody listens there. */
const NOWHERE = "http://127.0.0.1:9/v1";

/** What came of a call. */
export interface Answer<T> {
  readonly responses: readonly T[];
  readonly status: StatusObject | ServiceError;
  readonly headers: Metadata | undefined;
}

/** A real grpc-js client. Generated code writes its requests and reads its responses. */
export class TestClient {
  readonly grpc: Client;

  constructor(sidecar: Sidecar, place = 0) {
    const address = sidecar.addresses[place];
    if (address === undefined) throw new Error(`the sidecar has no address ${place}`);
    this.grpc = new Client(address, credentials.createInsecure(), {
      "grpc.enable_http_proxy": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      // Each client gets a connection of its own.
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  /** Opens a call; for tests that look at its course. */
  open<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { input: I; output: O },
    options: { readonly deadline?: number } = {},
  ): ClientDuplexStream<MessageInitShape<I>, MessageShape<O>> {
    return this.grpc.makeBidiStreamRequest(
      methodPath(method),
      (request: MessageInitShape<I>) => Buffer.from(toBinary(method.input, create(method.input, request))),
      (bytes: Buffer) => fromBinary(method.output, bytes),
      options,
    );
  }

  /** Sends all requests and waits for the end. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { input: I; output: O },
    requests: readonly MessageInitShape<I>[],
    options: { readonly deadline?: number } = {},
  ): Promise<Answer<MessageShape<O>>> {
    const call = this.open(method, options);
    const ended = answerOf(call);
    for (const request of requests) call.write(request);
    call.end();
    return await ended;
  }

  close(): void {
    this.grpc.close();
  }
}

/** Collects a call to its end. */
export function answerOf<I, O>(call: ClientDuplexStream<I, O>): Promise<Answer<O>> {
  const responses: O[] = [];
  let headers: Metadata | undefined;
  call.on("metadata", (metadata: Metadata) => (headers = metadata));
  call.on("data", (response: O) => responses.push(response));
  call.on("error", () => undefined);
  return new Promise((resolve) => {
    call.on("status", (status: StatusObject) => {
      resolve({ responses, status, headers });
    });
  });
}

/** A case with JSON text for its payloads. */
export function jsonCase(id: string, input: string, output: string | undefined, expected?: string) {
  const json = (value: string) => ({ kind: { case: "json" as const, value } });
  return {
    id,
    input: json(input),
    ...(output === undefined ? {} : { output: json(output) }),
    ...(expected === undefined ? {} : { expected: json(expected) }),
  };
}
