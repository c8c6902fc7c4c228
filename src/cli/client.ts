import { type DescMessage, type MessageShape, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Client,
  type ClientDuplexStream,
  Metadata,
  type ServiceError,
  credentials,
  status as grpcStatus,
} from "@grpc/grpc-js";

import {
  type CheckContractResponse,
  ContractService,
  DescribeMetricRequestSchema,
  type DescribeMetricResponse,
} from "../gen/skynet/scoring/v1/contract_service_pb.js";
import { type ScoreResponse, ScoreService } from "../gen/skynet/scoring/v1/score_service_pb.js";
import { methodPath } from "../server/grpc_method.js";
import { CommandError } from "./exit.js";

/** A sidecar, called over gRPC. Requests are given encoded; a call that fails throws `CallFailure`. */
export interface SidecarClient {
  /** The metric as loaded. Waits a bounded time for the sidecar to answer. */
  describe(): Promise<DescribeMetricResponse>;
  /** The checks as they end. */
  check(request: Uint8Array): AsyncIterable<CheckContractResponse>;
  /** The results as they come. Sending waits while the sidecar does not read, and stops when `signal` is aborted. */
  score(requests: Iterable<Uint8Array>, signal: AbortSignal): AsyncIterable<ScoreResponse>;
  close(): void;
}

/** A call that did not end well. */
export class CallFailure extends CommandError {
  override readonly name = "CallFailure";

  constructor(
    /** gRPC's name for what went wrong, such as `UNAVAILABLE`. */
    readonly status: string,
    readonly details: string,
  ) {
    super(`the sidecar answered ${status}: ${details}`);
  }
}

/** Connects to `host:port` or `unix:/path.sock`; nothing is sent before the first call. */
export function connect(address: string): SidecarClient {
  const client = new Client(address, credentials.createInsecure(), CHANNEL_OPTIONS);
  return {
    async describe() {
      const { describeMetric } = ContractService.method;
      const request = Buffer.from(toBinary(DescribeMetricRequestSchema, create(DescribeMetricRequestSchema)));
      const deadline = Date.now() + ANSWER_TIMEOUT_MS;
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          methodPath(describeMetric),
          same,
          decoder(describeMetric.output),
          request,
          new Metadata(),
          { deadline },
          (error, response) => {
            if (error !== null) reject(notReached(address, error));
            else if (response !== undefined) resolve(response);
          },
        );
      });
    },
    async *check(request) {
      const { checkContract } = ContractService.method;
      const call = client.makeServerStreamRequest(
        methodPath(checkContract),
        same,
        decoder(checkContract.output),
        Buffer.from(request),
        new Metadata(),
      );
      yield* responses<CheckContractResponse>(call);
    },
    async *score(requests, signal) {
      const { score } = ScoreService.method;
      const call = client.makeBidiStreamRequest(methodPath(score), same, decoder(score.output), new Metadata());
      const cancel = (): void => {
        call.cancel();
      };
      signal.addEventListener("abort", cancel, { once: true });
      if (signal.aborted) cancel();
      void send(call, requests);
      try {
        yield* responses<ScoreResponse>(call);
      } finally {
        signal.removeEventListener("abort", cancel);
        call.cancel();
      }
    },
    close() {
      client.close();
    },
  };
}

/** Sends as fast as the sidecar reads. Ends quietly with the call, whose failure the reading side tells. */
async function send(call: ClientDuplexStream<Buffer, unknown>, requests: Iterable<Uint8Array>): Promise<void> {
  const ended = new Promise<"ended">((resolve) =>
    call.once("status", () => {
      resolve("ended");
    }),
  );
  for (const request of requests) {
    const hasRoom = call.write(Buffer.from(request.buffer, request.byteOffset, request.length));
    if (hasRoom) continue;
    const drained = new Promise<"drained">((resolve) =>
      call.once("drain", () => {
        resolve("drained");
      }),
    );
    if ((await Promise.race([drained, ended])) === "ended") return;
  }
  call.end();
}

async function* responses<T>(call: AsyncIterable<unknown>): AsyncGenerator<T> {
  try {
    for await (const response of call) yield response as T;
  } catch (error) {
    throw isServiceError(error) ? new CallFailure(grpcStatus[error.code], withoutNotes(error.details)) : error;
  }
}

function notReached(address: string, error: ServiceError): CommandError {
  const isSilent = error.code === grpcStatus.DEADLINE_EXCEEDED || error.code === grpcStatus.UNAVAILABLE;
  if (!isSilent) return new CallFailure(grpcStatus[error.code], error.details);
  return new CommandError(
    `no sidecar answers at ${address} (${withoutNotes(error.details)}); start one with: skynet-scorer serve --metric metric.py`,
  );
}

/** grpc-js says that there is no connection before it says why, and adds how the name was resolved, mostly nothing. */
function withoutNotes(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (Error: )?/, "")
    .replace(/\.? ?Resolution note: .*$/s, "");
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "details" in error;
}

function same(request: Buffer): Buffer {
  return request;
}

function decoder<D extends DescMessage>(schema: D): (bytes: Buffer) => MessageShape<D> {
  return (bytes) => fromBinary(schema, bytes);
}

const CHANNEL_OPTIONS = {
  // A sidecar stands on this machine: a proxy that the environment names has no part in it.
  "grpc.enable_http_proxy": 0,
  // A result is never too large to be read.
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  // The sidecar does not wait in the middle of a response until this side allows more; HTTP/2 begins with 64 KiB.
  "grpc-node.flow_control_window": 4 * 1024 * 1024,
};

/** A sidecar that runs answers at once, even on a busy machine. */
const ANSWER_TIMEOUT_MS = 10_000;
