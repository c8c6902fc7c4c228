import { create } from "@bufbuild/protobuf";

import {
  Health,
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  type HealthListResponse,
  HealthListResponseSchema,
} from "../gen/health/v1/health_pb.js";
import type { Scorer } from "../scoring/scorer.js";
import type { CallContext } from "../services/call_context.js";
import { CallError } from "../services/errors.js";
import { type GrpcMethod, serverStreaming, unary } from "./grpc_method.js";

/** `grpc.health.v1`: SERVING while a metric is loaded and a worker stands ready. */
export class HealthService {
  #draining = false;
  readonly #watches = new Set<() => void>();
  readonly #stopListening: () => void;

  /** `names`: the services that can be asked for; the empty name is the whole sidecar. */
  constructor(
    private readonly scorer: Scorer,
    private readonly names: readonly string[],
  ) {
    this.#stopListening = scorer.onReadyChange(() => {
      this.#tell();
    });
  }

  methods(): GrpcMethod[] {
    const { check, list, watch } = Health.method;
    return [
      unary(check, (request) => this.check(request)),
      unary(list, () => this.list()),
      serverStreaming(watch, (request, context) => this.watch(request, context), "watch"),
    ];
  }

  /** From now on NOT_SERVING, whatever the scorer says. */
  drain(): void {
    this.#draining = true;
    this.#stopListening();
    this.#tell();
  }

  private check({ service }: HealthCheckRequest): HealthCheckResponse {
    if (this.#knows(service)) return create(HealthCheckResponseSchema, { status: this.#status() });
    throw new CallError("not_found", `there is no service "${service}"; there are: ${this.names.join(", ")}`);
  }

  private list(): HealthListResponse {
    const statuses = ["", ...this.names].map((name) => [name, { status: this.#status() }] as const);
    return create(HealthListResponseSchema, { statuses: Object.fromEntries(statuses) });
  }

  /** Tells the status at once and at each change, until the client leaves or the sidecar drains. */
  private async *watch(
    { service }: HealthCheckRequest,
    { signal }: CallContext,
  ): AsyncGenerator<HealthCheckResponse, void, undefined> {
    let wake: () => void = () => undefined;
    const stir = (): void => {
      wake();
    };
    this.#watches.add(stir);
    signal.addEventListener("abort", stir);
    try {
      let told: ServingStatus | undefined;
      for (;;) {
        const status = this.#knows(service) ? this.#status() : ServingStatus.SERVICE_UNKNOWN;
        if (status !== told) {
          told = status;
          yield create(HealthCheckResponseSchema, { status });
        } else if (signal.aborted) {
          return;
        } else {
          await new Promise<void>((resolve) => (wake = resolve));
        }
      }
    } finally {
      this.#watches.delete(stir);
    }
  }

  #knows(service: string): boolean {
    return service === "" || this.names.includes(service);
  }

  #status(): ServingStatus {
    return !this.#draining && this.scorer.isReady() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }

  #tell(): void {
    for (const wake of this.#watches) wake();
  }
}
