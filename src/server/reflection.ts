import {
  create,
  type DescExtension,
  type DescFile,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1Alpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { STATUS_OF } from "../services/errors.js";
import { bidiStreaming, type GrpcMethod, methodPath } from "./grpc_method.js";

/** The services that reflection itself consists of. */
export const REFLECTION_SERVICES: readonly DescService[] = [ServerReflection, ServerReflectionV1Alpha];

/** `grpc.reflection`, v1 and v1alpha, over the descriptors that the generated code holds. */
export function reflectionMethods(services: readonly DescService[]): GrpcMethod[] {
  const index = new DescriptorIndex(services);
  const v1 = bidiStreaming(
    ServerReflection.method.serverReflectionInfo,
    (requests) => answers(index, requests),
    "watch",
  );
  // The two versions differ in the package's name alone, and are the same on the wire.
  return [v1, { ...v1, path: methodPath(ServerReflectionV1Alpha.method.serverReflectionInfo) }];
}

async function* answers(
  index: DescriptorIndex,
  requests: AsyncIterable<ServerReflectionRequest>,
): AsyncGenerator<ServerReflectionResponse, void, undefined> {
  for await (const originalRequest of requests) {
    yield create(ServerReflectionResponseSchema, {
      validHost: originalRequest.host,
      originalRequest,
      messageResponse: answer(index, originalRequest.messageRequest),
    });
  }
}

type Question = ServerReflectionRequest["messageRequest"];
type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

function answer(index: DescriptorIndex, question: Question): Answer {
  switch (question.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.serviceNames.map((name) => ({ name })) } };
    case "fileByFilename":
      return files(index.fileByName(question.value), `file "${question.value}"`);
    case "fileContainingSymbol":
      return files(index.fileOfSymbol(question.value), `symbol "${question.value}"`);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      const what = `extension ${extensionNumber} of "${containingType}"`;
      return files(index.extensionsOf(containingType)?.find(({ number }) => number === extensionNumber)?.file, what);
    }
    case "allExtensionNumbersOfType": {
      const extensions = index.extensionsOf(question.value);
      if (extensions === undefined) return notFound(`message "${question.value}"`);
      const extensionNumber = extensions.map(({ number }) => number);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: question.value, extensionNumber } };
    }
    case undefined:
      return error(STATUS_OF.invalid_request, "the request asks for nothing");
  }
}

/** The file, and all that it imports, so that one answer is enough. */
function files(file: DescFile | undefined, what: string): Answer {
  if (file === undefined) return notFound(what);
  const fileDescriptorProto = [...withImports([file])].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(what: string): Answer {
  return error(STATUS_OF.not_found, `there is no ${what} here`);
}

function error(errorCode: number, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** What there is, by name. */
class DescriptorIndex {
  readonly serviceNames: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  /** By the extended message's name; every message that is known has an entry. */
  readonly #extensions = new Map<string, DescExtension[]>();

  constructor(services: readonly DescService[]) {
    this.serviceNames = services.map(({ typeName }) => typeName);
    for (const file of withImports(services.map(({ file }) => file))) {
      this.#files.set(file.proto.name, file);
      for (const name of symbolsOf(file)) this.#symbols.set(name, file);
      for (const type of nestedTypes(file)) {
        if (type.kind === "message" && !this.#extensions.has(type.typeName)) this.#extensions.set(type.typeName, []);
        if (type.kind === "extension") this.#addExtension(type);
      }
    }
  }

  fileByName(name: string): DescFile | undefined {
    return this.#files.get(name);
  }

  /** The file that declares a service, method, message, field, oneof, enum or enum value, by its full name. */
  fileOfSymbol(name: string): DescFile | undefined {
    return this.#symbols.get(name);
  }

  /** `undefined` where the message itself is not known. */
  extensionsOf(message: string): readonly DescExtension[] | undefined {
    return this.#extensions.get(message);
  }

  #addExtension(extension: DescExtension): void {
    const { typeName } = extension.extendee;
    this.#extensions.set(typeName, [...(this.#extensions.get(typeName) ?? []), extension]);
  }
}

/** Files before those that import them, each once. */
function withImports(files: readonly DescFile[], seen = new Set<DescFile>()): Set<DescFile> {
  for (const file of files) {
    if (seen.has(file)) continue;
    withImports(file.dependencies, seen);
    seen.add(file);
  }
  return seen;
}

function* symbolsOf(file: DescFile): Generator<string, void, undefined> {
  for (const type of nestedTypes(file)) {
    yield type.typeName;
    if (type.kind === "service") yield* type.methods.map(methodSymbol);
    if (type.kind === "message") yield* [...type.fields, ...type.oneofs].map(({ name }) => `${type.typeName}.${name}`);
    // An enum's values stand beside it, not in it.
    if (type.kind === "enum") yield* type.values.map(({ name }) => `${scopeOf(type.typeName)}${name}`);
  }
}

function methodSymbol({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

function scopeOf(typeName: string): string {
  return typeName.slice(0, typeName.lastIndexOf(".") + 1);
}
