import { create, type DescFile, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect } from "vitest";

import * as v1 from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import * as v1alpha from "../../src/gen/grpc/reflection/v1alpha/reflection_pb.js";
import { test } from "./scenario.js";

describe.each([
  ["v1", v1.ServerReflectionRequestSchema, v1.ServerReflectionResponseSchema],
  ["v1alpha", v1alpha.ServerReflectionRequestSchema, v1alpha.ServerReflectionResponseSchema],
] as const)("reflection %s", (version, request, response) => {
  test("names the services and gives a symbol's file with everything that it imports", async ({ start }) => {
    const { address } = await start("exact_match.py");
    const client = new Client(address, credentials.createInsecure(), { "grpc.enable_http_proxy": 0 });
    const call = client.makeBidiStreamRequest(
      `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      (message: MessageShape<typeof request>) => Buffer.from(toBinary(request, message)),
      (bytes: Buffer) => fromBinary(response, bytes),
    );

    call.write(create(request, { messageRequest: { case: "listServices", value: "" } }));
    call.write(
      create(request, { messageRequest: { case: "fileContainingSymbol", value: "skynet.scoring.v1.ScoreService" } }),
    );
    call.write(create(request, { messageRequest: { case: "fileContainingSymbol", value: "no.such.Symbol" } }));
    call.end();
    const answers: MessageShape<typeof response>["messageResponse"][] = [];
    for await (const answer of call as AsyncIterable<MessageShape<typeof response>>)
      answers.push(answer.messageResponse);
    client.close();

    const [services, files, missing] = answers;
    if (services?.case !== "listServicesResponse" || files?.case !== "fileDescriptorResponse") {
      throw new Error(`unexpected answers: ${answers.map((answer) => String(answer.case)).join(", ")}`);
    }
    expect(services.value.service.map(({ name }) => name)).toContain("skynet.scoring.v1.ScoreService");
    const protos = files.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    expect(protos.map(({ name }) => name).sort()).toEqual([
      "google/protobuf/struct.proto",
      "skynet/scoring/v1/case.proto",
      "skynet/scoring/v1/score_service.proto",
    ] satisfies DescFile["proto"]["name"][]);
    expect(missing).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
  });
});
