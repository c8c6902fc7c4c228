import type { RequestListener } from "node:http";

import { Health } from "../gen/health/v1/health_pb.js";
import { ContractService as ContractDescriptor } from "../gen/skynet/scoring/v1/contract_service_pb.js";
import { ObservationService as ObservationDescriptor } from "../gen/skynet/scoring/v1/observation_service_pb.js";
import { ScoreService as ScoreDescriptor } from "../gen/skynet/scoring/v1/score_service_pb.js";
import type { Scorer } from "../scoring/scorer.js";
import { ContractService } from "../services/contract_service.js";
import { ObservationService } from "../services/observation_service.js";
import { ScoreService } from "../services/score_service.js";
import type { Log } from "../worker/log.js";
import { connectHandler } from "./connect_routes.js";
import { bidiStreaming, type GrpcMethod, serverStreaming, unary } from "./grpc_method.js";
import { gatewayHandler, type GatewayModels } from "./gateway.js";
import { createGrpcServer } from "./grpc_server.js";
import { HealthService } from "./health.js";
import { parseListenAddress } from "./listen_address.js";
import { type HTTP1_TIMEOUTS, listen, type Listener } from "./listener.js";
import { OpenCalls } from "./open_calls.js";
import { REFLECTION_SERVICES, reflectionMethods } from "./reflection.js";
import { listenForRuns, type RunGateway } from "./run_gateway.js";
import { scoreMethods } from "./score_methods.js";

export interface SidecarOptions {
  /** Taken over: `Sidecar.close` closes it. */
  readonly scorer: Scorer;
  /** As `parseListenAddress` reads them; at least one. */
  readonly listen: readonly string[];
  readonly models: GatewayModels;
  /** Whether the sidecar runs artifacts, and needs a gateway for them alone. */
  readonly servesRuns: boolean;
  readonly log: Log;
  /** The sidecar's own version, for `DescribeMetric`. */
  readonly version: string;
  /** The largest request message. Default `DEFAULT_MAX_MESSAGE_BYTES`. */
  readonly maxMessageBytes?: number;
  /** For tests: see `ListenerOptions`. */
  readonly firstBytesTimeoutMs?: number;
  readonly http1Timeouts?: typeof HTTP1_TIMEOUTS;
}

export interface Sidecar {
  /** What was bound, as clients write it. */
  readonly addresses: readonly string[];

  /** Where the sidecar's own runs reach models; `undefined` where it runs none. */
  readonly runGatewayUrl: string | undefined;

  /**
   * Health is NOT_SERVING and new calls are UNAVAILABLE at once; running cases may finish until `drainTimeoutMs` from
   * now, then everything ends. Resolves when the scorer and every connection are closed; calling it again waits for the same.
   */
  close(options: { readonly drainTimeoutMs: number }): Promise<void>;
}

export const DEFAULT_MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Serves a scorer. Rejects, with nothing left open, where one of the addresses cannot be had. */
export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const { scorer, log } = options;
  const maxMessageBytes = options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES;
  const calls = new OpenCalls();
  const score = new ScoreService(scorer, maxMessageBytes);
  const contract = new ContractService(scorer, options.version, options.models.account.budget.maxUsd?.toNumber());
  const gateway = gatewayHandler({ observations: scorer.observations, models: options.models, maxMessageBytes, log });
  const services = [ScoreDescriptor, ContractDescriptor, ObservationDescriptor, Health, ...REFLECTION_SERVICES];
  const health = new HealthService(
    scorer,
    services.map(({ typeName }) => typeName),
  );
  const methods = [
    ...scoreMethods(score),
    ...contractMethods(contract),
    ...observationMethods(new ObservationService(scorer)),
    ...health.methods(),
    ...reflectionMethods(services),
  ];
  const grpc = createGrpcServer({ methods, calls, maxMessageBytes, log });
  const http1 = connectHandler({ score, contract, calls, maxMessageBytes, log, gateway });

  let listeners: Listener[];
  let runGateway: RunGateway | undefined;
  try {
    // First, so that no run finds it missing.
    if (options.servesRuns) runGateway = await listenForRuns(gateway);
    listeners = await listenOnAll(options, http1, grpc);
  } catch (reason) {
    health.drain();
    await runGateway?.close();
    await grpc.close(0);
    throw reason;
  }

  async function close(drainTimeoutMs: number): Promise<void> {
    health.drain();
    calls.drain();
    const scorerClosed = scorer.close(drainTimeoutMs);
    if (!(await calls.idle(drainTimeoutMs))) {
      calls.abort();
      await calls.idle(LAST_WORDS_MS);
    }
    await Promise.all([
      grpc.close(LAST_WORDS_MS),
      ...listeners.map((listener) => listener.close(LAST_WORDS_MS)),
      scorerClosed,
    ]);
    await runGateway?.close();
  }

  let closing: Promise<void> | undefined;
  return {
    addresses: listeners.flatMap(({ addresses }) => addresses),
    runGatewayUrl: runGateway?.url,
    close: ({ drainTimeoutMs }) => (closing ??= close(drainTimeoutMs)),
  };
}

/** For a client to take the last responses and the status before its connection is cut. */
const LAST_WORDS_MS = 1_000;

async function listenOnAll(
  options: SidecarOptions,
  http1: RequestListener,
  grpc: ReturnType<typeof createGrpcServer>,
): Promise<Listener[]> {
  const { log, firstBytesTimeoutMs, http1Timeouts } = options;
  const listeners: Listener[] = [];
  try {
    for (const address of options.listen.map(parseListenAddress)) {
      const listener = await listen(address, {
        http1,
        http2: grpc.accept,
        log,
        ...(firstBytesTimeoutMs === undefined ? {} : { firstBytesTimeoutMs }),
        ...(http1Timeouts === undefined ? {} : { http1Timeouts }),
      });
      listeners.push(listener);
    }
  } catch (reason) {
    await Promise.all(listeners.map((listener) => listener.close(0)));
    throw reason;
  }
  return listeners;
}

function contractMethods(service: ContractService): GrpcMethod[] {
  const { checkContract, describeMetric } = ContractDescriptor.method;
  return [
    serverStreaming(checkContract, (request, context) => service.checkContract(request, context)),
    unary(describeMetric, (_request, context) => service.describeMetric(context)),
  ];
}

function observationMethods(service: ObservationService): GrpcMethod[] {
  const { observe } = ObservationDescriptor.method;
  return [bidiStreaming(observe, (requests, context) => service.observe(requests, context))];
}
