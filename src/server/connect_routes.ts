import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { RequestListener, ServerResponse } from "node:http";

import { ContractService as ContractDescriptor } from "../gen/skynet/scoring/v1/contract_service_pb.js";
import {
  ScoreBatchResponseSchema,
  ScoreService as ScoreDescriptor,
} from "../gen/skynet/scoring/v1/score_service_pb.js";
import { type CallContext, FINGERPRINT_HEADER } from "../services/call_context.js";
import type { ContractService } from "../services/contract_service.js";
import { callStatus } from "../services/errors.js";
import { batchOfMessage, messageOfResult } from "../services/score_messages.js";
import type { ScoreService } from "../services/score_service.js";
import type { Log } from "../worker/log.js";
import { RequestFaults } from "./connect_faults.js";
import { isGatewayPath } from "./gateway.js";
import { methodPath } from "./grpc_method.js";
import type { OpenCalls } from "./open_calls.js";

/** What is served over HTTP/1.1, and within which limits. */
export interface ConnectOptions {
  readonly score: ScoreService;
  readonly contract: ContractService;
  readonly calls: OpenCalls;
  readonly maxMessageBytes: number;
  readonly log: Log;
  /** Answers what `isGatewayPath` says. */
  readonly gateway: RequestListener;
}

/** Serves HTTP/1.1: Connect with JSON, so that curl and a browser's `fetch` work, and a word to those who look around. */
export function connectHandler(options: ConnectOptions): RequestListener {
  const faults = new RequestFaults();
  const adapter = connectNodeAdapter({
    routes: (router) => {
      addRoutes(router, options, faults);
      faults.wrap(router);
    },
    interceptors: [faults.interceptor],
    contextValues: () => createContextValues(),
    fallback: (_request, response) => {
      say(response as ServerResponse, 404, `There is nothing here. ${WHAT_THERE_IS}`);
    },
    // gRPC has its own server, on the same port.
    grpc: false,
    grpcWeb: false,
    readMaxBytes: options.maxMessageBytes,
    // A misspelled field is an error that says so, and not a case without output. Results look as in results.jsonl.
    jsonOptions: { ignoreUnknownFields: false, useProtoFieldName: true, alwaysEmitImplicit: true },
  });
  return (request, response) => {
    if (isGatewayPath(request.url)) options.gateway(request, response);
    else if ((request.method === "GET" || request.method === "HEAD") && request.url === "/") {
      say(response, 200, `This is a Skynet scorer: it scores cases with a metric. ${WHAT_THERE_IS}`);
    } else if (!URL.canParse(`http://${request.headers.host ?? ""}`)) {
      // The adapter would throw where nobody catches.
      say(response, 400, "The Host header does not name a host.");
    } else {
      adapter(request, response);
    }
  };
}

const METHODS = [
  ScoreDescriptor.method.scoreBatch,
  ContractDescriptor.method.checkContract,
  ContractDescriptor.method.describeMetric,
];

const A_STREAM = " (answers with a stream, so as application/connect+json, in envelopes)";

const WHAT_THERE_IS = [
  "Over HTTP/1.1, with Connect and JSON (content-type: application/json):",
  ...METHODS.map((method) => `  POST ${methodPath(method)}${method.methodKind === "unary" ? "" : A_STREAM}`),
  "For run code, the OpenAI API: POST /v1/chat/completions, GET /v1/models",
  "Everything else, streams included, is gRPC on this same port, with reflection; try: grpcurl -plaintext HOST:PORT list",
].join("\n");

function addRoutes(
  router: ConnectRouter,
  { score, contract, calls, log }: ConnectOptions,
  faults: RequestFaults,
): void {
  const [scoreBatch, checkContract, describeMetric] = [
    ScoreDescriptor.method.scoreBatch,
    ContractDescriptor.method.checkContract,
    ContractDescriptor.method.describeMetric,
  ];

  router.rpc(scoreBatch, (request, handler) =>
    served(handler, async (context) => {
      const results = await score.scoreBatch(batchOfMessage(request, 0), context);
      return create(ScoreBatchResponseSchema, { results: results.map(messageOfResult) });
    }),
  );
  router.rpc(describeMetric, (_request, handler) =>
    served(handler, (context) => Promise.resolve(contract.describeMetric(context))),
  );
  router.rpc(checkContract, async function* (request, handler) {
    const call = begin(handler);
    try {
      yield* contract.checkContract(request, call.context);
    } catch (reason) {
      throw failure(reason, handler, call.context.signal);
    } finally {
      call.end();
    }
  });

  async function served<T>(handler: HandlerContext, serve: (context: CallContext) => Promise<T>): Promise<T> {
    const call = begin(handler);
    try {
      return await serve(call.context);
    } catch (reason) {
      throw failure(reason, handler, call.context.signal);
    } finally {
      call.end();
    }
  }

  /** Lets a call in, or throws what its client is told. */
  function begin(handler: HandlerContext): { readonly context: CallContext; readonly end: () => void } {
    faults.taken(handler.values);
    try {
      const call = calls.begin("work");
      const context = {
        signal: AbortSignal.any([handler.signal, call.signal]),
        sendFingerprint: (fingerprint: string) => {
          handler.responseHeader.set(FINGERPRINT_HEADER, fingerprint);
        },
      };
      return { context, end: call.end };
    } catch (reason) {
      throw failure(reason, handler, handler.signal);
    }
  }

  /** What a client is told. Where the call was aborted, that comes first: what the service threw is only its echo. */
  function failure(reason: unknown, handler: HandlerContext, signal: AbortSignal): ConnectError {
    const first: unknown = signal.aborted ? signal.reason : reason;
    if (first instanceof ConnectError) return first;
    const { code, status, message } = callStatus(first);
    if (code === "internal") {
      log.error({ err: first, method: methodPath(handler.method) }, "a call failed through a fault of the sidecar");
    }
    return new ConnectError(message, CODES.get(status) ?? Code.Internal);
  }
}

/** The canonical status numbers are Connect's too. */
const CODES = new Map<number, Code>(
  Object.values(Code).flatMap((code) => (typeof code === "number" ? [[code, code] as const] : [])),
);

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
}
