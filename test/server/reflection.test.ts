import { createFileRegistry, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import {
  ServerReflection,
  type ServerReflectionRequestSchema,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1Alpha } from "../../src/gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { Sidecar } from "../../src/server/sidecar.js";
import { start, TestClient } from "./clients.js";
import { FakeScorer } from "./fake_scorer.js";

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

let sidecar: Sidecar;
let client: TestClient;

beforeAll(async () => {
  sidecar = await start({ scorer: new FakeScorer() });
  client = new TestClient(sidecar);
});

afterAll(async () => {
  client.close();
  await sidecar.close({ drainTimeoutMs: 0 });
});

describe.each([
  ["v1", ServerReflection.method.serverReflectionInfo],
  [
    "v1alpha",
    ServerReflectionV1Alpha.method
      .serverReflectionInfo as unknown as typeof ServerReflection.method.serverReflectionInfo,
  ],
])("%s", (_version, method) => {
  async function ask(...questions: Question[]) {
    const requests = questions.map((messageRequest) => ({ host: "here", messageRequest }));
    const { responses, status } = await client.call(method, requests);
    expect(status.code).toBe(0);
    expect(responses.every(({ validHost }) => validHost === "here")).toBe(true);
    return responses.map(({ messageResponse }) => messageResponse);
  }

  async function filesFor(question: Question): Promise<FileDescriptorProto[]> {
    const [answer] = await ask(question);
    if (answer?.case !== "fileDescriptorResponse") throw new Error(`no files came, but ${JSON.stringify(answer)}`);
    return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  }

  test("lists every service", async () => {
    const [answer] = await ask({ case: "listServices", value: "*" });
    expect(answer?.case === "listServicesResponse" && answer.value.service.map(({ name }) => name)).toEqual([
      "skynet.scoring.v1.ScoreService",
      "skynet.scoring.v1.ContractService",
      "skynet.scoring.v1.ObservationService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  test.each([
    ["a service", "skynet.scoring.v1.ScoreService", "skynet/scoring/v1/score_service.proto"],
    ["a method", "skynet.scoring.v1.ScoreService.Score", "skynet/scoring/v1/score_service.proto"],
    ["a message", "skynet.scoring.v1.CaseResult", "skynet/scoring/v1/case.proto"],
    ["a field", "skynet.scoring.v1.CaseResult.index", "skynet/scoring/v1/case.proto"],
    ["a oneof", "skynet.scoring.v1.CaseResult.outcome", "skynet/scoring/v1/case.proto"],
    ["an enum", "skynet.scoring.v1.CaseErrorCode", "skynet/scoring/v1/case.proto"],
    ["an enum's value", "skynet.scoring.v1.CASE_ERROR_CODE_INVALID_CASE", "skynet/scoring/v1/case.proto"],
    ["a nested enum", "grpc.health.v1.HealthCheckResponse.ServingStatus", "health/v1/health.proto"],
    ["a nested enum's value", "grpc.health.v1.HealthCheckResponse.SERVING", "health/v1/health.proto"],
    ["an imported message", "google.protobuf.Value", "google/protobuf/struct.proto"],
  ])("finds the file of %s", async (_what, value, name) => {
    const files = await filesFor({ case: "fileContainingSymbol", value });
    expect(files.at(-1)?.name).toBe(name);
  });

  test("an answer is whole: with its imports it makes a registry, maps and optionals included", async () => {
    const file = await filesFor({ case: "fileByFilename", value: "skynet/scoring/v1/contract_service.proto" });
    expect(file.map(({ name }) => name)).toEqual([
      "google/protobuf/struct.proto",
      "skynet/scoring/v1/case.proto",
      "skynet/scoring/v1/contract_service.proto",
    ]);
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
    expect(registry.getMessage("skynet.scoring.v1.Score")?.field["scores"]?.fieldKind).toBe("map");
    expect(registry.getMessage("skynet.scoring.v1.Timing")?.field["runMs"]?.proto.proto3Optional).toBe(true);
  });

  test("what there is not is NOT_FOUND, and the stream goes on", async () => {
    const extension = { containingType: "skynet.scoring.v1.Case", extensionNumber: 100 };
    const answers = await ask(
      { case: "fileByFilename", value: "no.proto" },
      { case: "fileContainingSymbol", value: "skynet.scoring.v1.Nothing" },
      { case: "fileContainingExtension", value: extension },
      { case: "allExtensionNumbersOfType", value: "skynet.scoring.v1.Nothing" },
      { case: undefined },
      { case: "allExtensionNumbersOfType", value: "skynet.scoring.v1.Case" },
    );
    expect(answers).toMatchObject([
      { case: "errorResponse", value: { errorCode: 5, errorMessage: 'there is no file "no.proto" here' } },
      { case: "errorResponse", value: { errorCode: 5 } },
      { case: "errorResponse", value: { errorCode: 5 } },
      { case: "errorResponse", value: { errorCode: 5 } },
      { case: "errorResponse", value: { errorCode: 3 } },
      {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: "skynet.scoring.v1.Case", extensionNumber: [] },
      },
    ]);
  });
});
