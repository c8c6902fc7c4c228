import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { once } from "node:events";

import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "../../src/gen/health/v1/health_pb.js";
import type { CaseResult, Observation } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import {
  CheckContractRequestSchema,
  type CheckContractResponse,
  CheckContractResponseSchema,
  DescribeMetricRequestSchema,
  type DescribeMetricResponse,
  DescribeMetricResponseSchema,
} from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import {
  type ObservationBegan,
  ObserveRequestSchema,
  type ObserveRequest,
  type ObserveResponse,
  ObserveResponseSchema,
} from "../../src/gen/skynet/scoring/v1/observation_service_pb.js";
import {
  ScoreBatchRequestSchema,
  ScoreBatchResponseSchema,
  type ScoreRequest,
  ScoreRequestSchema,
  type ScoreResponse,
  ScoreResponseSchema,
} from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import type { CaseInit } from "./cases.js";
import { until, within } from "./until.js";

export type ServingStatus = keyof typeof HealthCheckResponse_ServingStatus;
export type ScoreStream = ClientDuplexStream<ScoreRequest, ScoreResponse>;
export type ObserveStream = ClientDuplexStream<ObserveRequest, ObserveResponse>;

/** An engine, as the sidecar sees it: grpc-js and generated code over a real socket. */
export class ScoringClient {
  readonly #client: Client;

  /** `address`: `host:port` or `unix:/path`. */
  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure(), {
      "grpc.enable_http_proxy": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
    });
  }

  /** Scores cases on one stream, in batches; the results in the order of the cases. Fails where one has not exactly one. */
  async score(cases: readonly CaseInit[], options: ScoreOptions = {}): Promise<CaseResult[]> {
    return (await this.scoreCall(cases, options)).results;
  }

  /** As `score`, with what else the call brought. */
  async scoreCall(cases: readonly CaseInit[], options: ScoreOptions = {}): Promise<ScoreCallOutcome> {
    const { batch = 256, artifact, onResponse } = options;
    const call = this.openStream();
    const results: CaseResult[] = [];
    const sizes: number[] = [];
    let fingerprint: string | undefined;
    call.on("metadata", (metadata: Metadata) => (fingerprint = fingerprintIn(metadata)));
    call.on("data", (response: ScoreResponse) => {
      results.push(...response.results);
      sizes.push(toBinary(ScoreResponseSchema, response).length);
      onResponse?.(response, results.length);
    });
    const ended = once(call, "end");
    // Also where it fails while cases are being written.
    ended.catch(() => undefined);
    for (let first = 0; first < cases.length && !call.destroyed; first += batch) {
      const request = create(ScoreRequestSchema, {
        cases: cases.slice(first, first + batch),
        ...(artifact === undefined ? {} : { artifact }),
      });
      if (!call.write(request)) await Promise.race([once(call, "drain"), ended]);
    }
    call.end();
    await within(`the end of a stream of ${cases.length} cases`, ended, CALL_TIMEOUT_MS);
    return { results: inOrder(results, cases.length), sizes, fingerprint };
  }

  openStream(deadline?: Date): ScoreStream {
    return this.#client.makeBidiStreamRequest(
      "/skynet.scoring.v1.ScoreService/Score",
      encoder(ScoreRequestSchema),
      decoder(ScoreResponseSchema),
      deadline === undefined ? {} : { deadline },
    );
  }

  /** A call that stays open: each `score` waits for its own cases' results. */
  openScore(): OpenScore {
    return new OpenScore(this.openStream());
  }

  /** A call that stays open: each request waits for its answer. */
  observe(): OpenObserve {
    const call = this.#client.makeBidiStreamRequest(
      "/skynet.scoring.v1.ObservationService/Observe",
      encoder(ObserveRequestSchema),
      decoder(ObserveResponseSchema),
    );
    return new OpenObserve(call);
  }

  async scoreBatch(cases: readonly CaseInit[], artifact?: CaseInit["output"]): Promise<CaseResult[]> {
    const request = { cases: [...cases], ...(artifact === undefined ? {} : { artifact }) };
    const { results } = await this.#unary(
      "/skynet.scoring.v1.ScoreService/ScoreBatch",
      ScoreBatchRequestSchema,
      request,
      ScoreBatchResponseSchema,
    );
    return results;
  }

  /** The events of a whole contract check. */
  async checkContract(samples: readonly CaseInit[]): Promise<CheckContractResponse[]> {
    const call = this.#client.makeServerStreamRequest(
      "/skynet.scoring.v1.ContractService/CheckContract",
      encoder(CheckContractRequestSchema),
      decoder(CheckContractResponseSchema),
      create(CheckContractRequestSchema, { samples: [...samples] }),
      deadlineOptions(),
    );
    const events: CheckContractResponse[] = [];
    for await (const event of call as AsyncIterable<CheckContractResponse>) events.push(event);
    return events;
  }

  describeMetric(): Promise<DescribeMetricResponse> {
    return this.#unary(
      "/skynet.scoring.v1.ContractService/DescribeMetric",
      DescribeMetricRequestSchema,
      {},
      DescribeMetricResponseSchema,
    );
  }

  async health(service = ""): Promise<ServingStatus> {
    const answer = await this.#unary(
      "/grpc.health.v1.Health/Check",
      HealthCheckRequestSchema,
      { service },
      HealthCheckResponseSchema,
    );
    return HealthCheckResponse_ServingStatus[answer.status] as ServingStatus;
  }

  /** Each status as it changes, until the server ends the watch or the caller stops to ask. */
  async *watchHealth(): AsyncGenerator<ServingStatus, void> {
    const call = this.#client.makeServerStreamRequest(
      "/grpc.health.v1.Health/Watch",
      encoder(HealthCheckRequestSchema),
      decoder(HealthCheckResponseSchema),
      create(HealthCheckRequestSchema),
    );
    try {
      for await (const answer of call as AsyncIterable<MessageShape<typeof HealthCheckResponseSchema>>) {
        yield HealthCheckResponse_ServingStatus[answer.status] as ServingStatus;
      }
    } finally {
      call.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #unary<I extends DescMessage, O extends DescMessage>(
    path: string,
    input: I,
    request: MessageInitShape<I>,
    output: O,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        encoder(input),
        decoder(output),
        create(input, request),
        deadlineOptions(),
        (error, answer) => {
          if (error !== null) reject(error);
          else if (answer === undefined) reject(new Error(`${path} answered nothing`));
          else resolve(answer);
        },
      );
    });
  }
}

export class OpenScore {
  #sent = 0;
  readonly #results: CaseResult[] = [];

  constructor(private readonly call: ScoreStream) {
    call.on("data", (response: ScoreResponse) => this.#results.push(...response.results));
  }

  async score(cases: readonly CaseInit[]): Promise<CaseResult[]> {
    const from = this.#sent;
    this.#sent += cases.length;
    this.call.write(create(ScoreRequestSchema, { cases: [...cases] }));
    await until("the cases have their results", () => this.#results.length >= this.#sent);
    return inOrder(this.#results, this.#sent).slice(from);
  }

  async end(): Promise<void> {
    this.call.end();
    await within("the end of the stream", once(this.call, "end"));
  }
}

export class OpenObserve {
  readonly #answers: AsyncIterator<ObserveResponse>;

  constructor(readonly call: ObserveStream) {
    this.#answers = (call as AsyncIterable<ObserveResponse>)[Symbol.asyncIterator]();
  }

  async begin(label = ""): Promise<ObservationBegan> {
    const event = await this.ask({ case: "begin", value: { label } });
    if (event.case !== "began") throw new Error(`begin was answered with ${JSON.stringify(event)}`);
    return event.value;
  }

  /** What was measured. Fails with the error's message. */
  async finish(observationId: string): Promise<Observation> {
    const event = await this.ask({ case: "end", value: { observationId } });
    if (event.case === "ended") return event.value;
    throw new Error(event.case === "error" ? event.value.message : "end was answered as another request");
  }

  async ask(action: ObserveAction): Promise<ObserveResponse["event"]> {
    this.call.write(create(ObserveRequestSchema, action === undefined ? {} : { action }));
    const { value } = (await within("the answer of an Observe call", this.#answers.next())) as {
      value: ObserveResponse;
    };
    return value.event;
  }

  async end(): Promise<void> {
    this.call.end();
    await within("the end of an Observe call", this.#answers.next());
  }
}

type ObserveAction = MessageInitShape<typeof ObserveRequestSchema>["action"];

interface ScoreOptions {
  /** Cases a message. */
  readonly batch?: number;
  /** What the sidecar runs on the cases that have no output. */
  readonly artifact?: CaseInit["output"];
  /** Called with each response, and how many results there are so far. */
  readonly onResponse?: (response: ScoreResponse, results: number) => void;
}

export interface ScoreCallOutcome {
  readonly results: CaseResult[];
  /** Bytes of each response. */
  readonly sizes: number[];
  /** The header `skynet-metric-fingerprint`. */
  readonly fingerprint: string | undefined;
}

/** Waits until a watch of the health tells a status: a sidecar is not serving yet while its first worker starts. */
export async function statusBecomes(watch: AsyncGenerator<ServingStatus, void>, wanted: ServingStatus): Promise<void> {
  const told = async (): Promise<void> => {
    for (;;) {
      const { value, done } = await watch.next();
      if (value === wanted) return;
      if (done === true) throw new Error(`the watch ended before the status became ${wanted}`);
    }
  };
  await within(`the status ${wanted}`, told());
}

/** The status that a call failed with; fails where it did not. */
export async function statusOf(call: Promise<unknown>): Promise<{ code: string | undefined; details: string }> {
  try {
    await call;
  } catch (error) {
    if (!isServiceError(error)) throw error;
    return { code: status[error.code], details: error.details };
  }
  throw new Error("the call should have failed, and did not");
}

/** A call that hangs must fail its test and not the whole run. */
const CALL_TIMEOUT_MS = 55_000;

export function fingerprintIn(metadata: Metadata): string | undefined {
  return metadata.get("skynet-metric-fingerprint")[0]?.toString();
}

function inOrder(results: readonly CaseResult[], count: number): CaseResult[] {
  const sorted = [...results].sort((a, b) => a.index - b.index);
  const wrong = sorted.findIndex(({ index }, place) => index !== place);
  if (wrong < 0 && sorted.length === count) return sorted;
  throw new Error(
    `${count} cases got ${results.length} results; the first without exactly one is ${wrong < 0 ? sorted.length : wrong}`,
  );
}

function deadlineOptions(): { deadline: Date } {
  return { deadline: new Date(Date.now() + CALL_TIMEOUT_MS) };
}

function encoder<T extends DescMessage>(schema: T): (message: MessageShape<T>) => Buffer {
  return (message) => Buffer.from(toBinary(schema, message));
}

function decoder<T extends DescMessage>(schema: T): (bytes: Buffer) => MessageShape<T> {
  return (bytes) => fromBinary(schema, bytes);
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "details" in error && "code" in error;
}
