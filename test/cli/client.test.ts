import { create, toBinary } from "@bufbuild/protobuf";
import { type DescMessage, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  status,
} from "@grpc/grpc-js";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { type SidecarClient, connect } from "../../src/cli/client.js";
import {
  CheckContractResponseSchema,
  ContractService,
  DescribeMetricResponseSchema,
} from "../../src/gen/skynet/scoring/v1/contract_service_pb.js";
import {
  type ScoreRequest,
  ScoreRequestSchema,
  type ScoreResponse,
  ScoreResponseSchema,
  ScoreService,
} from "../../src/gen/skynet/scoring/v1/score_service_pb.js";

type ScoreHandler = (call: ServerDuplexStream<ScoreRequest, ScoreResponse>) => void;

let server: Server;
let client: SidecarClient;
let folder: string;
let handleScore: ScoreHandler;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "skynet-client-"));
  const address = `unix:${join(folder, "s")}`;
  server = new Server();
  const { describeMetric, checkContract } = ContractService.method;
  server.addService(
    { describe: definition(describeMetric, false), check: definition(checkContract, true) },
    {
      describe: (_call: unknown, answer: (error: null, response: unknown) => void) => {
        answer(null, create(DescribeMetricResponseSchema, { loaded: true, fingerprint: "f1" }));
      },
      check: (call: ServerWritableStream<unknown, unknown>) => {
        call.write(create(CheckContractResponseSchema, { event: { case: "check", value: { name: "Metric file" } } }));
        call.write(create(CheckContractResponseSchema, { event: { case: "verdict", value: { passed: true } } }));
        call.end();
      },
    },
  );
  server.addService(
    { score: definition(ScoreService.method.score, true, true) },
    {
      score: (call: ServerDuplexStream<ScoreRequest, ScoreResponse>) => {
        handleScore(call);
      },
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
  client = connect(address);
});

afterEach(() => {
  client.close();
  server.forceShutdown();
  rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

const never = new AbortController().signal;

function request(id: string, bytes = 0): Uint8Array {
  const output = { kind: { case: "json", value: `"${"x".repeat(bytes)}"` } } as const;
  return toBinary(ScoreRequestSchema, create(ScoreRequestSchema, { cases: [{ id, output }] }));
}

/** Answers each request with a result for each of its cases. */
const echo: ScoreHandler = (call) => {
  call.on("data", ({ cases }: ScoreRequest) => {
    call.write(create(ScoreResponseSchema, { results: cases.map(({ id }) => ({ id })) }));
  });
  call.on("end", () => {
    call.end();
  });
};

async function ids(responses: AsyncIterable<ScoreResponse>): Promise<string[]> {
  const found: string[] = [];
  for await (const { results } of responses) found.push(...results.map(({ id }) => id));
  return found;
}

describe("calls", () => {
  it("describe the metric", async () => {
    expect(await client.describe()).toMatchObject({ loaded: true, fingerprint: "f1" });
  });

  it("check, event by event", async () => {
    const events: (string | undefined)[] = [];
    for await (const { event } of client.check(new Uint8Array())) events.push(event.case);
    expect(events).toEqual(["check", "verdict"]);
  });

  it("score, and read while they send", async () => {
    handleScore = echo;
    const sent = Array.from({ length: 200 }, (_, place) => String(place));
    expect(
      await ids(
        client.score(
          sent.map((id) => request(id)),
          never,
        ),
      ),
    ).toEqual(sent);
  });

  it("never go through a proxy", async () => {
    for (const name of ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY"]) {
      vi.stubEnv(name, "http://127.0.0.1:1");
    }
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    const direct = connect(`localhost:${String(port)}`);
    try {
      expect((await direct.describe()).loaded).toBe(true);
    } finally {
      direct.close();
    }
  });
});

describe("sending", () => {
  it("waits while the sidecar does not read", async () => {
    let taken = 0;
    function* requests(): Generator<Uint8Array> {
      for (; taken < 100; taken += 1) yield request(String(taken), 1024 * 1024);
    }
    let begin: (() => void) | undefined;
    const hasCall = new Promise<void>((resolve) => {
      handleScore = (call) => {
        call.pause();
        begin = () => {
          echo(call);
          call.resume();
        };
        resolve();
      };
    });
    const reading = ids(client.score(requests(), never));
    await hasCall;
    // 100 MB are to be sent; a few are under way when the flow control's windows are full.
    expect(taken).toBeLessThan(20);
    begin?.();
    expect(await reading).toHaveLength(100);
  });

  it("ends when the run is over, and the sidecar hears of it", async () => {
    const cancelled = new Promise<void>((resolve) => {
      handleScore = (call) => {
        call.on("cancelled", () => {
          resolve();
        });
        call.write(create(ScoreResponseSchema, { results: [{ id: "a" }] }));
      };
    });
    for await (const { results } of client.score([request("a")], never)) {
      expect(results).toHaveLength(1);
      break;
    }
    await cancelled;
  });

  it("ends when it is aborted", async () => {
    const abort = new AbortController();
    handleScore = () => {
      abort.abort();
    };
    await expect(ids(client.score([request("a")], abort.signal))).rejects.toMatchObject({ status: "CANCELLED" });
  });
});

describe("failures", () => {
  it("are told as the sidecar told them", async () => {
    handleScore = (call) => {
      call.emit("error", { code: status.RESOURCE_EXHAUSTED, details: "the message has 9 bytes, and 4 are allowed" });
    };
    await expect(ids(client.score([request("a")], never))).rejects.toMatchObject({
      exitCode: 1,
      message: "the sidecar answered RESOURCE_EXHAUSTED: the message has 9 bytes, and 4 are allowed",
    });
  });
});

function definition(
  method: DescMethod,
  responseStream: boolean,
  requestStream = false,
): MethodDefinition<unknown, unknown> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream,
    responseStream,
    requestSerialize: serializer(method.input),
    requestDeserialize: (bytes) => fromBinary(method.input, bytes),
    responseSerialize: serializer(method.output),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function serializer(schema: DescMessage): (message: unknown) => Buffer {
  return (message) => Buffer.from(toBinary(schema, message as Parameters<typeof toBinary>[1]));
}
